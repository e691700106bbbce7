//! What happened.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Other;

/// Something that happened to a sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Counts up over all sandboxes.
    pub seq: i64,
    /// Which sandbox.
    pub sandbox_id: String,
    /// What.
    pub kind: String,
    /// Who did it.
    #[serde(default)]
    pub actor: String,
    /// More about it.
    #[serde(default)]
    pub data: Value,
    /// What else was said.
    #[serde(flatten)]
    pub other: Other,
}

/// Which events to list.
#[derive(Clone, Debug, Default, Serialize)]
pub struct EventFilter {
    /// Only those after this number.
    #[serde(rename = "after", skip_serializing_if = "Option::is_none")]
    pub after_seq: Option<i64>,
    /// At most so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// A line of a sandbox's log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Counts up.
    #[serde(default)]
    pub seq: u64,
    /// `stdout`, `stderr`, `event`, `gateway` for what was denied, or `notice` for what is missing in the log.
    pub source: String,
    /// Which process wrote it.
    #[serde(default)]
    pub pid: Option<u32>,
    /// What.
    pub text: String,
    /// What else was said.
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

/// Who did what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Counts up.
    pub seq: i64,
    /// Who.
    pub actor: String,
    /// What.
    pub action: String,
    /// To what.
    #[serde(default)]
    pub target: Option<String>,
    /// How it ended: the HTTP status.
    #[serde(default)]
    pub status: i64,
    /// What else was said.
    #[serde(flatten)]
    pub other: Other,
}

/// Which entries of the audit to list.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AuditFilter {
    /// Only what this one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// At most so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}
