//! The lifecycle of sandboxes: the only writer of sandbox state.
//!
//! Dialects translate to and from the verbs of [`Service`], one verb per file in `verbs/`. Modules use only modules above them in this
//! table, so there are no import cycles.
//!
//! | module | holds |
//! |---|---|
//! | `memory`, `request`, `error`, `settings` | the memory budget, what can be requested, failures, what an operator sets |
//! | `random`, `seal`, `policy`, `expiry` | ids, sealed secrets, stored network policies, when a sandbox's time is over |
//! | `command_log` | the output of commands, in files |
//! | `state` | what the service holds in memory: activity, locks, providers, pushed grants |
//! | `service` | [`Service`], which owns all of it |
//! | `claim` | the exclusive right to change a sandbox |
//! | `grants` | pushes network grants to providers |
//! | `recording` | records the output and end of commands, also of those that a dead server started |
//! | `background` | timers, reconciler, orphans, heartbeats, health checks, flows |
//! | `verbs` | what can be done with sandboxes, snapshots, volumes and secrets |
//!
//! A transition is always the same: claim the row, call the provider, commit row, events and timer in one transaction. It runs on a
//! task of its own, so that a client that disconnects cannot leave it half done. A crash at any point leaves a claim that ends, and the
//! reconciler makes row and instance agree. docs/design/lifecycle.md shows all transitions.
//!
//! This crate knows nothing of HTTP.
#![forbid(unsafe_code)]

mod background;
mod claim;
mod command_log;
mod error;
mod expiry;
mod grants;
mod memory;
mod policy;
mod random;
mod recording;
mod request;
mod seal;
mod service;
mod settings;
mod state;
#[cfg(test)]
mod test_service;
mod verbs;

pub use background::health::ProviderView;
pub use error::ServiceError;
pub use memory::{MEMORY_WAIT, MemoryBudget, MemoryHold, Shortage, UNCOUNTED_BYTES};
pub use random::new_installation_name;
pub use request::{
    Command, CommandOutput, ConnectRequest, Connected, CreateRequest, FlowFilter, ForkRequest,
    LogEntry, LogLines, LogSource, MountRequest, PartialOutput, RunRequest, SandboxChange,
    SecretInfo, SecretRequest, Template, TemplateList, TimeoutRequest,
};
pub use sandyard_core::PartialLimits;
pub use sandyard_store::model::{
    Event, EventFilter, Expiry, Page, Sandbox, SandboxFilter, Snapshot, TimeoutAction, Volume,
};
pub use service::Service;
pub use settings::ServiceSettings;
pub use state::node_setup::NodeSetup;
pub use state::provider_registry::{NodeConnectFn, NodeConnectFuture, NodeConnector};
pub use state::status_changes::StatusChange;
pub use verbs::{
    Live, LogFollower, NotRunning, UnknownInstance, UnknownInstances, VOLUME_TOKEN_PREFIX,
    WakePolicy,
};

/// Result of a verb.
pub type ServiceResult<T> = error::Result<T>;
