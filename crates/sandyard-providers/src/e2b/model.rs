//! Requests and answers of the API. Every field of an answer may be missing or invalid.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Request to create a sandbox.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewSandbox<'a> {
    #[serde(rename = "templateID")]
    pub(super) template_id: &'a str,
    /// Seconds until it is paused.
    pub(super) timeout: u64,
    /// When this server is gone, sandboxes are paused, not killed, so that no data is lost.
    pub(super) auto_pause: bool,
    pub(super) secure: bool,
    #[serde(rename = "allow_internet_access")]
    pub(super) allow_internet_access: bool,
    pub(super) network: Network,
    pub(super) metadata: BTreeMap<&'a str, &'a str>,
    pub(super) env_vars: &'a BTreeMap<String, String>,
}

/// Egress of a sandbox, and access to its ports.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Network {
    pub(super) allow_out: Vec<String>,
    pub(super) deny_out: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) allow_public_traffic: Option<bool>,
}

/// Request to resume a sandbox.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Connect {
    pub(super) timeout: u64,
    pub(super) auto_pause: bool,
    /// False to start it anew from its files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory: Option<bool>,
}

/// Request to pause a sandbox.
#[derive(Serialize)]
pub(super) struct Pause {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory: Option<bool>,
}

/// Request to set the timeout of a sandbox.
#[derive(Serialize)]
pub(super) struct SetTimeout {
    pub(super) timeout: u64,
}

/// Request to create a snapshot of files.
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
    pub(super) aliases: Option<Vec<String>>,
    /// With their teams.
    pub(super) names: Option<Vec<String>>,
    pub(super) created_at: Option<String>,
}

/// A sandbox as it occurs in all answers; each contains some of the fields.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sandbox {
    #[serde(rename = "sandboxID")]
    pub(super) sandbox_id: String,
    #[serde(rename = "templateID", default)]
    pub(super) template_id: String,
    pub(super) envd_version: Option<String>,
    pub(super) envd_access_token: Option<String>,
    pub(super) traffic_access_token: Option<String>,
    pub(super) domain: Option<String>,
    pub(super) started_at: Option<String>,
    pub(super) end_at: Option<String>,
    #[serde(default)]
    pub(super) cpu_count: u32,
    #[serde(rename = "memoryMB", default)]
    pub(super) memory_mb: u64,
    #[serde(rename = "diskSizeMB", default)]
    pub(super) disk_size_mb: u64,
    pub(super) state: Option<State>,
    /// What the pause retained: `full` or `filesystem`.
    pub(super) pause_mode: Option<String>,
    pub(super) metadata: Option<BTreeMap<String, String>>,
}

sandyard_core::debug_fields!(Sandbox: sandbox_id, state, metadata);

/// Whether a sandbox runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// Paused.
    Paused,
    /// Running, or in a transition.
    #[serde(other)]
    Running,
}

/// Usage at one time.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metric {
    pub(super) timestamp: Option<String>,
    #[serde(default)]
    pub(super) timestamp_unix: i64,
    #[serde(default)]
    pub(super) cpu_used_pct: f32,
    #[serde(default)]
    pub(super) mem_used: u64,
    pub(super) mem_cache: Option<u64>,
    #[serde(default)]
    pub(super) disk_used: u64,
}
