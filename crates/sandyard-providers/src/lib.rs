//! The providers: where sandboxes run, each behind [`sandyard_provider::Provider`].
//!
//! - [`embedded`]: the engine of this host
//! - [`docker`]: containers of a Docker daemon
//! - [`e2b`]: E2B, or whoever speaks its API
//! - [`daytona`]: the cloud of that name
//! - [`node`]: another server of the same installation, and the half of it that answers
//!
//! Each has the same files: `config` what it is told, `backend` the calls, `convert` its words and ours, `error` its
//! failures and ours. Nothing here decides what should be: that is the lifecycle service.
#![forbid(unsafe_code)]

mod asked;
pub mod daytona;
pub mod docker;
pub mod e2b;
mod edge;
pub mod embedded;
mod keeper;
mod left;
pub mod node;
mod rounds;
mod times;
mod tokens;
mod tools_inside;
mod usage_history;

pub use daytona::{Daytona, DaytonaConfig};
pub use docker::{Docker, DockerConfig};
pub use e2b::{E2b, E2bConfig};
pub use embedded::{Embedded, EmbeddedConfig};
pub use node::{NodeConfig, NodeProvider};
pub use times::Times;
