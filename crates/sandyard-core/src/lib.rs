//! Ids, limits, states and error kinds: the words every crate shares. No I/O; of the kernel nothing but its clock and its
//! random bytes.
//!
//! - [`caller`]: who is asking, and what that one may do
//! - [`clock`]: the time, as something that can be handed in
//! - [`error_kind`]: the registry of failures
//! - [`id`]: the name of a sandbox
//! - [`limits`]: how much of the host a sandbox may use
//! - [`network`]: what a sandbox may reach, and what became of each attempt
//! - [`percent`]: percent-encoding for URLs and headers
//! - [`random`]: bytes that nobody can guess, and how bytes are written
//! - [`size`]: `512m` and `2g`, read and written
//! - [`state`]: where a sandbox stands and where it may go next, at its provider
//! - [`status`]: the same in the eyes of its users
#![forbid(unsafe_code)]

pub mod caller;
pub mod clock;
pub mod error_kind;
pub mod id;
pub mod limits;
pub mod network;
pub mod percent;
pub mod random;
pub mod size;
pub mod state;
pub mod status;

pub use caller::{Caller, Role, Scope};
pub use clock::{Clock, ManualTime};
pub use error_kind::ErrorKind;
pub use id::{SandboxId, SandboxIdError};
pub use limits::{LimitPolicy, Limits, LimitsError, PartialLimits};
pub use network::NetworkPolicy;
pub use state::SandboxState;
pub use status::SandboxStatus;
