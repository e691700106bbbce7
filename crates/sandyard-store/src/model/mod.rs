//! The rows. Times are in milliseconds since 1970.

mod access;
mod cluster;
mod history;
mod sandbox;
mod secret;
mod snapshot;
mod timer;
mod volume;

pub use access::{ApiKey, NewApiKey, NewUser, Session, User, UserPatch};
pub use cluster::Node;
pub use history::{AuditEntry, Event, EventFilter, NewAuditEntry, NewEvent};
pub use sandbox::{
    ClaimOutcome, Expiry, Idempotency, InsertOutcome, MountedVolume, NewSandbox, Operation, Page,
    Sandbox, SandboxFilter, SandboxPatch, TimeoutAction,
};
pub use secret::Secret;
pub use snapshot::Snapshot;
pub use timer::{Timer, TimerPlan};
pub use volume::{Volume, VolumeInsert, VolumeRemoval, VolumeStatus};
