//! The providers: where sandboxes run, each behind [`sandyard_provider::Provider`].
//!
//! - [`embedded`]: the engine of this host
//! - [`docker`]: containers of a Docker daemon
//! - [`e2b`]: E2B, or a server that speaks its API
//! - [`daytona`]: Daytona's cloud
//! - [`fake`]: runs nothing; for tests of programs that use the server
//! - [`node`]: another server of the same installation; both halves of the protocol
//!
//! [`Registry`] lists them. Their folders have the same files: `registration` has the name, settings and capabilities, `config` the
//! connection, `backend` the calls; `convert` translates types and `error` errors. The lifecycle service decides what should exist;
//! nothing here does.
#![forbid(unsafe_code)]

mod agent_client;
mod background_batches;
mod cloud_connector;
mod cloud_tools;
mod date;
pub mod daytona;
pub mod docker;
pub mod e2b;
pub mod embedded;
pub mod fake;
mod hex;
mod http_client;
mod maybe_created;
pub mod node;
pub mod registry;
mod requested_limits;
mod timeouts;
mod usage_history;
mod volume_helper;

pub use daytona::{Daytona, DaytonaConfig};
pub use docker::{Docker, DockerConfig};
pub use e2b::{E2b, E2bConfig};
pub use embedded::{Embedded, EmbeddedConfig};
pub use node::{NodeConfig, NodeProvider};
pub use registry::Registry;
pub use timeouts::CallTimeouts;
