//! Events, logs and the audit log.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Other;

/// Event in the life of a sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Sequence number, increasing over all sandboxes.
    pub seq: i64,
    /// ID of the sandbox.
    pub sandbox_id: String,
    /// Kind of event.
    pub kind: String,
    /// User who caused the event, or `system`.
    #[serde(default)]
    pub actor: String,
    /// Details, depending on the kind.
    #[serde(default)]
    pub data: Value,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Filter for a list of events.
#[derive(Clone, Debug, Default, Serialize)]
pub struct EventFilter {
    /// Return only events with a greater `seq`.
    #[serde(rename = "after", skip_serializing_if = "Option::is_none")]
    pub after_seq: Option<i64>,
    /// Maximum number of results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Line of a sandbox's log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Sequence number, increasing.
    #[serde(default)]
    pub seq: u64,
    /// Source of the line: `stdout`, `stderr`, `event`, `gateway` (a denied connection) or `notice` (a gap in the log).
    pub source: String,
    /// Process that wrote the line.
    pub pid: Option<u32>,
    /// Text of the line.
    pub text: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Lines of a sandbox's log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogPage {
    /// The lines, oldest first.
    #[serde(rename = "logs")]
    pub entries: Vec<LogEntry>,
    /// Number of the sandbox's first lines that are no longer kept.
    #[serde(default)]
    pub dropped_lines: u64,
    /// Whether more lines follow.
    #[serde(default)]
    pub has_more: bool,
}

/// Entry of the audit log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Sequence number, increasing.
    pub seq: i64,
    /// User who made the request.
    pub actor: String,
    /// ID of the operation.
    pub action: String,
    /// Resource that the operation acted on.
    pub target: Option<String>,
    /// HTTP status of the response.
    #[serde(default)]
    pub status: i64,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Filter for the audit log.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AuditFilter {
    /// Return only entries of this user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Maximum number of results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}
