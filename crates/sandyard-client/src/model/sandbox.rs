//! Sandboxes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{NetworkPolicy, Other};

/// Request to create a sandbox. An empty field takes the server's default.
#[derive(Clone, Default, Serialize)]
pub struct CreateSandbox {
    /// Owner of the sandbox. Only an admin may name another user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Provider that runs the sandbox. `None`: the server's choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Template or snapshot to start from.
    #[serde(rename = "template_id", skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Second name for the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// Idle timeout in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// What happens when the timeout is over: `pause` or `delete`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_action: Option<String>,
    /// Labels chosen by the caller.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Environment variables of every command.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Memory limit, like `512m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<String>,
    /// CPU limit in cores, like `0.5`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_limit: Option<f64>,
    /// Disk space that the sandbox may write, like `4g`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_limit: Option<String>,
    /// Maximum number of processes and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids_limit: Option<u32>,
    /// Egress policy. `None`: the server's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkPolicy>,
    /// Secrets that the sandbox uses without seeing them: environment variable to name of the secret.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, String>,
    /// Volumes to mount: path inside the sandbox to name or ID of the volume.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub volumes: BTreeMap<String, String>,
}

sandyard_core::debug_fields!(CreateSandbox: provider, template, alias);

/// Changes of a sandbox; the default changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UpdateSandbox {
    /// New name; `Some(None)` removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<Option<String>>,
    /// Labels to set, and to remove where there is no value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, Option<String>>,
}

/// Sandbox after an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sandbox {
    /// ID of the sandbox.
    pub sandbox_id: String,
    /// Status of the sandbox.
    #[serde(default)]
    pub status: String,
    /// ID that the provider gave the sandbox.
    pub provider_sandbox_id: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Everything known about a sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SandboxInfo {
    /// ID of the sandbox.
    pub sandbox_id: String,
    /// Status of the sandbox.
    pub status: String,
    /// Whether the processes of a paused sandbox have ended.
    #[serde(default)]
    pub is_stopped: bool,
    /// Second name that the owner chose.
    pub alias: Option<String>,
    /// Owner of the sandbox.
    #[serde(default)]
    pub user_id: String,
    /// Provider that runs the sandbox.
    #[serde(default)]
    pub provider: String,
    /// Operations that the provider supports: `pause`, `snapshot` and so on.
    pub capabilities: Option<BTreeMap<String, bool>>,
    /// Template or snapshot that the sandbox was created from.
    #[serde(default)]
    pub template_id: String,
    /// Time of creation (RFC 3339).
    pub created_at: Option<String>,
    /// Time at which the timeout is over unless the sandbox is used (RFC 3339).
    pub expires_at: Option<String>,
    /// Time at which the sandbox is deleted unless it is used (RFC 3339).
    #[serde(default)]
    pub deletes_at: Option<String>,
    /// What happens when the timeout is over: `pause`, `stop` or `delete`.
    #[serde(default)]
    pub timeout_action: String,
    /// Ports that anyone may open.
    #[serde(default)]
    pub public_ports: Vec<u16>,
    /// Egress policy in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkPolicy>,
    /// Secrets that the sandbox uses without seeing them: environment variable to name of the secret.
    #[serde(default)]
    pub secrets: BTreeMap<String, String>,
    /// Mounted volumes: path inside the sandbox to name of the volume.
    #[serde(default)]
    pub volumes: BTreeMap<String, String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Filter for a list of sandboxes.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ListFilter {
    /// Return only sandboxes of this user. Only admins see sandboxes of others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Return only sandboxes with this status. `None`: all except deleted ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Maximum number of results on a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Position to continue from: `next` of the previous page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// Results on this page.
    pub items: Vec<T>,
    /// Value of `cursor` for the next page. `None` on the last page.
    pub next: Option<String>,
}

/// Request to change the idle timeout.
#[derive(Clone, Debug, Serialize)]
pub struct SetTimeout {
    /// New idle timeout in seconds.
    #[serde(rename = "timeout_seconds")]
    pub seconds: u64,
    /// What happens when the timeout is over: `pause` or `delete`. `None`: unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
}

/// Settings of a fork that differ from the original's.
#[derive(Clone, Default, Serialize)]
pub struct ForkSandbox {
    /// Environment variables. `None`: as the original.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    /// Labels. `None`: as the original.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    /// Idle timeout in seconds. `None`: as the original.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
}

sandyard_core::debug_fields!(ForkSandbox);

/// Port of a sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// TCP port inside the sandbox.
    pub port: u16,
    /// Preview URL of the port.
    pub url: String,
    /// URL with an access token, valid for 24 hours for anyone who has it.
    pub signed_url: Option<String>,
    /// The same for a web browser, on a host of its own where the browser can resolve it.
    #[serde(default)]
    pub browser_url: Option<String>,
    /// Whether anyone may open the port.
    #[serde(default)]
    pub public: bool,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Resource usage at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MetricsPoint {
    /// Time of the measurement, in milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
    /// CPU time used since the previous point, in percent of the CPU limit.
    pub cpu_percent: f64,
    /// Memory in use in bytes, page cache excluded.
    pub memory_bytes: u64,
    /// Page cache in bytes.
    pub cache_bytes: u64,
    /// Number of bytes written on top of the template.
    pub disk_bytes: u64,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Current resource usage of a sandbox.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metrics {
    /// Memory in use in bytes, page cache included.
    pub memory_bytes: Option<u64>,
    /// CPU time used so far, in microseconds.
    pub cpu_usage_us: Option<u64>,
    /// Number of processes and threads.
    pub pids: Option<u64>,
    /// Number of bytes written on top of the template.
    pub disk_bytes: Option<u64>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}
