//! The providers: where sandboxes run, each behind [`sandyard_provider::Provider`].
//!
//! - [`embedded`]: the engine of this host
//! - [`node`]: another server of the same installation, and the half of it that answers
//!
//! Each has the same files: `config` what it is told, `backend` the calls, `convert` its words and ours, `error` its
//! failures and ours. Nothing here decides what should be: that is the lifecycle service.
#![forbid(unsafe_code)]

pub mod embedded;
pub mod node;
mod times;

pub use embedded::{Embedded, EmbeddedConfig};
pub use node::{NodeConfig, NodeProvider};
pub use times::Times;
