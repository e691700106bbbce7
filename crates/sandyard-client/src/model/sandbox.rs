//! Sandboxes.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{NetworkPolicy, Other};

/// A sandbox to be made; what is empty is up to the server.
#[derive(Clone, Default, Serialize)]
pub struct CreateSandbox {
    /// For whom; only an admin may name somebody else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Which provider shall run it; none: the server's choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What it starts from.
    #[serde(rename = "template_id", skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Another name for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// How many seconds it lives without activity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// What happens then: `pause` or `delete`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_action: Option<String>,
    /// Its maker's own words.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Variables every command gets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Memory, like `512m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<String>,
    /// Cores, like `0.5`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_limit: Option<f64>,
    /// Bytes it may write, like `4g`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_limit: Option<String>,
    /// Processes and threads at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids_limit: Option<u32>,
    /// What it may reach; none: the server's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkPolicy>,
    /// Secrets it uses without seeing them: by variable, the secret's name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, String>,
    /// Volumes in it: by path inside, the volume's name or id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub volumes: BTreeMap<String, String>,
}

impl fmt::Debug for CreateSandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateSandbox")
            .field("provider", &self.provider)
            .field("template", &self.template)
            .field("alias", &self.alias)
            .finish_non_exhaustive()
    }
}

/// A sandbox, as a change to it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sandbox {
    /// Its name.
    pub sandbox_id: String,
    /// Where it stands.
    #[serde(default)]
    pub status: String,
    /// The provider's name for it.
    #[serde(default)]
    pub provider_sandbox_id: Option<String>,
    /// What else was said.
    #[serde(flatten)]
    pub other: Other,
}

/// All that is known of a sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SandboxInfo {
    /// Its name.
    pub sandbox_id: String,
    /// Where it stands.
    pub status: String,
    /// Another name its owner gave it.
    #[serde(default)]
    pub alias: Option<String>,
    /// Whose it is.
    #[serde(default)]
    pub user_id: String,
    /// Which provider runs it.
    #[serde(default)]
    pub provider: String,
    /// What can be done with it there, by word: `pause`, `snapshot`, …
    #[serde(default)]
    pub capabilities: Option<BTreeMap<String, bool>>,
    /// What it was made from.
    #[serde(default)]
    pub template_id: String,
    /// When it was made.
    #[serde(default)]
    pub created_at: Option<String>,
    /// When its time is over if it is not used.
    #[serde(default)]
    pub expires_at: Option<String>,
    /// Ports anybody may open.
    #[serde(default)]
    pub public_ports: Vec<u16>,
    /// What it may reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkPolicy>,
    /// Secrets it uses without seeing them: by variable, the secret's name.
    #[serde(default)]
    pub secrets: BTreeMap<String, String>,
    /// Volumes in it: by path inside, the volume's name.
    #[serde(default)]
    pub volumes: BTreeMap<String, String>,
    /// What else was said.
    #[serde(flatten)]
    pub other: Other,
}

/// Which sandboxes to list.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ListFilter {
    /// Whose; only an admin may ask for somebody else's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// In which status; none: all but deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// At most so many on a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Where the page begins: `next` of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Part of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// What was found.
    pub items: Vec<T>,
    /// Where the next page begins; none: that was all.
    pub next: Option<String>,
}

/// A sandbox's new time.
#[derive(Clone, Debug, Serialize)]
pub struct SetTimeout {
    /// Seconds, from now on and after every activity.
    #[serde(rename = "timeout_seconds")]
    pub seconds: u64,
    /// What happens then, `pause` or `delete`; none: as before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
}

/// What is different in a copy of a sandbox.
#[derive(Clone, Default, Serialize)]
pub struct ForkSandbox {
    /// Its variables; none: as the original.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    /// Words of its maker; none: as the original.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    /// Seconds it lives without activity; none: as the original.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
}

impl fmt::Debug for ForkSandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForkSandbox").finish_non_exhaustive()
    }
}

/// A port of a sandbox that can be reached from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// The port inside.
    pub port: u16,
    /// Where it is reached, by those who may.
    pub url: String,
    /// The same for whoever has this link, for a day.
    #[serde(default)]
    pub signed_url: Option<String>,
    /// Whether anybody may open it.
    #[serde(default)]
    pub public: bool,
    /// What else was said.
    #[serde(flatten)]
    pub other: Other,
}

/// What a sandbox used over some seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MetricsPoint {
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// Processor time used since the point before, in percent of what its limit allows.
    pub cpu_percent: f64,
    /// Memory in bytes, without page cache.
    pub memory_bytes: u64,
    /// Page cache in bytes.
    pub cache_bytes: u64,
    /// Bytes written on top of the template.
    pub disk_bytes: u64,
    /// What else was said.
    #[serde(flatten)]
    pub other: Other,
}

/// What a sandbox uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metrics {
    /// Memory in bytes, page cache included.
    pub memory_bytes: Option<u64>,
    /// Processor time used so far, in microseconds.
    pub cpu_usage_us: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
    /// Bytes written on top of the template.
    pub disk_bytes: Option<u64>,
    /// What else was said.
    #[serde(flatten)]
    pub other: Other,
}
