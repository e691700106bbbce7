//! Events and audit entries.

use std::collections::BTreeMap;

use sandyard_core::SandboxId;
use serde_json::Value;

/// An event of a sandbox. It stays after the sandbox is deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its number, counted over all sandboxes; also the cursor of lists.
    pub seq: i64,
    /// The id of the sandbox.
    pub sandbox_id: SandboxId,
    /// The owner of the sandbox.
    pub owner: String,
    /// When it happened, in milliseconds since 1970.
    pub at_ms: i64,
    /// The kind of event: `created`, `running`, `paused`, `woken`, `stopped`, `deleted`, `error`, `command`, `adopted`, …
    pub kind: String,
    /// Who caused it: a user's name or `system`.
    pub actor: String,
    /// Details that depend on the kind.
    pub data: Value,
}

/// An event to insert.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    /// The id of the sandbox.
    pub sandbox_id: SandboxId,
    /// The owner of the sandbox.
    pub owner: String,
    /// When it happened, in milliseconds since 1970.
    pub at_ms: i64,
    /// The kind of event.
    pub kind: String,
    /// Who caused it: a user's name or `system`.
    pub actor: String,
    /// Details that depend on the kind.
    pub data: Value,
}

/// Which events to list, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventFilter {
    /// Only events of this sandbox.
    pub sandbox_id: Option<SandboxId>,
    /// Only events of this owner's sandboxes.
    pub owner: Option<String>,
    /// Only events of these kinds; empty for all.
    pub kinds: Vec<String>,
    /// No events of these kinds.
    pub except_kinds: Vec<String>,
    /// Only events whose data has all these values.
    pub data: BTreeMap<String, String>,
    /// Only events after this `seq`.
    pub after_seq: Option<i64>,
    /// Whether to return the newest `limit` events instead of the oldest.
    pub is_tail: bool,
    /// Maximum number of events; 0 for 1,000.
    pub limit: usize,
}

/// An audit entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its number.
    pub seq: i64,
    /// Everything else.
    pub entry: NewAuditEntry,
}

/// An audit entry to insert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAuditEntry {
    /// When it happened, in milliseconds since 1970.
    pub at_ms: i64,
    /// The user's name, or `-`.
    pub actor: String,
    /// The credentials: see `Caller::via`.
    pub via: String,
    /// The name of the operation.
    pub action: String,
    /// The sandbox, user or key that it concerns.
    pub target: Option<String>,
    /// The HTTP status of the response.
    pub status: i64,
    /// The id of the request.
    pub request_id: String,
    /// The IP address of the client.
    pub address: Option<String>,
}
