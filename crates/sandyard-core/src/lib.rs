//! Types that every crate shares: ids, limits, states, error kinds. No I/O; the only system calls are for the time and for random bytes.
//!
//! - [`bounds`]: longest names, texts and maps of a request
//! - [`caller`]: who makes a request, and what that caller may do
//! - [`clock`]: the time, passed in as a value
//! - [`debug_fields`]: `Debug` of types that hold secrets
//! - [`error_kind`]: the registry of failures
//! - [`id`]: the id of a sandbox
//! - [`limits`]: how much of the host a sandbox may use
//! - [`network`]: what a sandbox may reach, and the record of each attempt
//! - [`percent`]: percent-encoding for URLs and headers
//! - [`random`]: random bytes and hexadecimal text
//! - [`size`]: sizes as people write them, `512m` and `2g`
//! - [`state`]: the state of a sandbox at its provider
//! - [`status`]: the status of a sandbox in the store
//! - [`token_bucket`]: how often something may happen
#![forbid(unsafe_code)]

pub mod bounds;
pub mod caller;
pub mod clock;
mod debug;
pub mod error_kind;
pub mod id;
pub mod limits;
pub mod network;
pub mod percent;
pub mod random;
pub mod size;
pub mod state;
pub mod status;
pub mod time_span;
pub mod token_bucket;
pub mod tool_selection;

pub use caller::{Caller, Role, Scope};
pub use clock::{Clock, ManualTime};
pub use error_kind::ErrorKind;
pub use id::{SandboxId, SandboxIdError};
pub use limits::{LimitPolicy, Limits, LimitsError, PartialLimits};
pub use network::NetworkPolicy;
pub use state::SandboxState;
pub use status::SandboxStatus;
pub use token_bucket::TokenBucket;
pub use tool_selection::ToolSelection;
