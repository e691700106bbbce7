//! Ids, limits, states and error kinds: the words every crate shares. No I/O.
//!
//! - [`id`]: the name of a sandbox
//! - [`limits`]: how much of the host a sandbox may use
//! - [`size`]: `512m` and `2g`, read and written
//! - [`state`]: where a sandbox stands and where it may go next
#![forbid(unsafe_code)]

pub mod id;
pub mod limits;
pub mod size;
pub mod state;

pub use id::{SandboxId, SandboxIdError};
pub use limits::{Limits, LimitsError};
pub use state::SandboxState;
