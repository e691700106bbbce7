//! What the API takes and tells. Everything it tells may be missing or nonsense.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A sandbox to be made.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewSandbox<'a> {
    #[serde(rename = "templateID")]
    pub(super) template_id: &'a str,
    /// Seconds until it is paused.
    pub(super) timeout: u64,
    /// A server that is gone never loses anybody's data: paused, not killed.
    pub(super) auto_pause: bool,
    pub(super) secure: bool,
    #[serde(rename = "allow_internet_access")]
    pub(super) allow_internet_access: bool,
    pub(super) network: Network,
    pub(super) metadata: BTreeMap<&'a str, &'a str>,
    pub(super) env_vars: &'a BTreeMap<String, String>,
}

/// What a sandbox may reach, and who reaches its ports.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Network {
    pub(super) allow_out: Vec<String>,
    pub(super) deny_out: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) allow_public_traffic: Option<bool>,
}

/// How to wake a sandbox.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Connect {
    pub(super) timeout: u64,
    pub(super) auto_pause: bool,
    /// False: it starts anew from its files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory: Option<bool>,
}

/// How to pause a sandbox.
#[derive(Serialize)]
pub(super) struct Pause {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory: Option<bool>,
}

/// When a sandbox is paused.
#[derive(Serialize)]
pub(super) struct SetTimeout {
    pub(super) timeout: u64,
}

/// A snapshot to be made, of files alone.
#[derive(Serialize)]
pub(super) struct NewSnapshot<'a> {
    pub(super) name: &'a str,
    pub(super) memory: bool,
}

/// A snapshot.
#[derive(Debug, Deserialize)]
pub(super) struct Snapshot {
    #[serde(rename = "snapshotID")]
    pub(super) snapshot_id: String,
    #[serde(default)]
    pub(super) names: Vec<String>,
}

/// A template.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Template {
    #[serde(rename = "templateID")]
    pub(super) template_id: String,
    #[serde(default)]
    pub(super) aliases: Option<Vec<String>>,
    /// With their teams.
    #[serde(default)]
    pub(super) names: Option<Vec<String>>,
    #[serde(default)]
    pub(super) created_at: Option<String>,
}

/// A sandbox, in all of the API's answers about one; each has some of it.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sandbox {
    #[serde(rename = "sandboxID")]
    pub(super) sandbox_id: String,
    #[serde(rename = "templateID", default)]
    pub(super) template_id: String,
    #[serde(default)]
    pub(super) envd_version: Option<String>,
    #[serde(default)]
    pub(super) envd_access_token: Option<String>,
    #[serde(default)]
    pub(super) traffic_access_token: Option<String>,
    #[serde(default)]
    pub(super) domain: Option<String>,
    #[serde(default)]
    pub(super) started_at: Option<String>,
    #[serde(default)]
    pub(super) end_at: Option<String>,
    #[serde(default)]
    pub(super) cpu_count: u32,
    #[serde(rename = "memoryMB", default)]
    pub(super) memory_mb: u64,
    #[serde(rename = "diskSizeMB", default)]
    pub(super) disk_size_mb: u64,
    #[serde(default)]
    pub(super) state: Option<State>,
    /// What a pause kept: `full` or `filesystem`.
    #[serde(default)]
    pub(super) pause_mode: Option<String>,
    #[serde(default)]
    pub(super) metadata: Option<BTreeMap<String, String>>,
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox")
            .field("sandbox_id", &self.sandbox_id)
            .field("state", &self.state)
            .field("metadata", &self.metadata)
            .finish_non_exhaustive()
    }
}

/// Whether a sandbox runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// It does not.
    Paused,
    /// It does, or is on its way to or from it.
    #[serde(other)]
    Running,
}

/// What a sandbox used at one time.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metric {
    #[serde(default)]
    pub(super) timestamp: Option<String>,
    #[serde(default)]
    pub(super) timestamp_unix: i64,
    #[serde(default)]
    pub(super) cpu_used_pct: f32,
    #[serde(default)]
    pub(super) mem_used: u64,
    #[serde(default)]
    pub(super) mem_cache: Option<u64>,
    #[serde(default)]
    pub(super) disk_used: u64,
}
