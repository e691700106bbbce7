//! What happened: to sandboxes, and by whom.

use std::collections::BTreeMap;

use sandyard_core::SandboxId;
use serde_json::Value;

/// Something that happened to a sandbox. Kept after it is deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Counts up over all sandboxes; also the cursor.
    pub seq: i64,
    /// Which sandbox.
    pub sandbox_id: SandboxId,
    /// Whose it was.
    pub owner: String,
    /// When.
    pub at_ms: i64,
    /// What: `created`, `running`, `paused`, `woken`, `stopped`, `deleted`, `error`, `command`, `adopted`, …
    pub kind: String,
    /// Who did it: a user's name or `system`.
    pub actor: String,
    /// More about it.
    pub data: Value,
}

/// An event to be remembered.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    /// Which sandbox.
    pub sandbox_id: SandboxId,
    /// Whose it is.
    pub owner: String,
    /// When.
    pub at_ms: i64,
    /// What.
    pub kind: String,
    /// Who.
    pub actor: String,
    /// More about it.
    pub data: Value,
}

/// Which events to list. Oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventFilter {
    /// Of which sandbox.
    pub sandbox_id: Option<SandboxId>,
    /// Of whose sandboxes.
    pub owner: Option<String>,
    /// Of which kinds; empty: all.
    pub kinds: Vec<String>,
    /// Not of these kinds.
    pub except_kinds: Vec<String>,
    /// Each of these words must be in the data.
    pub data: BTreeMap<String, String>,
    /// Only those after this `seq`.
    pub after_seq: Option<i64>,
    /// The newest `limit` instead of the oldest.
    pub is_tail: bool,
    /// At most so many; 0: 1,000.
    pub limit: usize,
}

/// Who did what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Counts up.
    pub seq: i64,
    /// The rest.
    pub entry: NewAuditEntry,
}

/// An audit entry to be remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAuditEntry {
    /// When.
    pub at_ms: i64,
    /// Who: a user's name, or `-`.
    pub actor: String,
    /// With which credentials: see `Caller::via`.
    pub via: String,
    /// What: the operation's name.
    pub action: String,
    /// To what: a sandbox, user or key.
    pub target: Option<String>,
    /// How it ended: the HTTP status.
    pub status: i64,
    /// Which request it was.
    pub request_id: String,
    /// From which address.
    pub address: Option<String>,
}
