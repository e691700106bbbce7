//! What a caller asks for, and how the engine describes a sandbox.

use std::collections::BTreeMap;
use std::fmt;

use sandyard_core::{Limits, SandboxId, SandboxState};
use serde::{Deserialize, Serialize};

use crate::sys::process::ProcessKey;

/// Name of the template used when none is given: the host's own programs.
pub const DEFAULT_TEMPLATE: &str = "host";

/// A sandbox to be made.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxSpec {
    /// Name of the template it starts from.
    pub template: String,
    /// How much of the host it may use.
    pub limits: Limits,
    /// Environment variables of every command. They may be secrets and are never logged. Variables that make programs trust the
    /// gateway (such as `SSL_CERT_FILE`) are added where they are not set.
    pub env: BTreeMap<String, String>,
    /// Token for requests to the agent from inside or through a port. `None`: a random one.
    pub access_token: Option<String>,
    /// Its host name; `None`: its id.
    pub hostname: Option<String>,
    /// Labels that its creator finds it by. Not secret, and not visible inside.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Its volumes. Snapshots and diffs leave their files out; a fork mounts the same volumes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<MountSpec>,
    /// Delete it when the connection that made it closes, for any reason.
    pub ephemeral: bool,
}

/// A volume in a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MountSpec {
    /// The volume's id.
    pub volume: String,
    /// Mount point inside: absolute, and not below `/proc`, `/sys` or `/dev`. Made if it is missing; links are not followed.
    pub path: String,
}

impl Default for SandboxSpec {
    fn default() -> Self {
        Self {
            template: DEFAULT_TEMPLATE.to_owned(),
            limits: Limits::default(),
            env: BTreeMap::new(),
            access_token: None,
            hostname: None,
            labels: BTreeMap::new(),
            mounts: Vec::new(),
            ephemeral: false,
        }
    }
}

impl fmt::Debug for SandboxSpec {
    /// Leaves out the values of variables and the token: they are secrets, and debug output ends in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxSpec")
            .field("template", &self.template)
            .field("limits", &self.limits)
            .field("env", &self.env.keys())
            .field("labels", &self.labels)
            .field("mounts", &self.mounts)
            .field("ephemeral", &self.ephemeral)
            .finish_non_exhaustive()
    }
}

/// How a fork differs from the original sandbox. Files, limits and volumes are the same.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ForkSpec {
    /// Environment variables of every command; `None`: those of the original.
    pub env: Option<BTreeMap<String, String>>,
    /// Token for requests to the agent; `None`: a new random one, so that users of the original cannot use the fork.
    pub access_token: Option<String>,
    /// Its host name; `None`: its id.
    pub hostname: Option<String>,
    /// Its labels. Those of the original are not copied: they identify the original.
    pub labels: BTreeMap<String, String>,
}

impl fmt::Debug for ForkSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForkSpec")
            .field("env", &self.env.as_ref().map(BTreeMap::keys))
            .field("labels", &self.labels)
            .finish_non_exhaustive()
    }
}

/// The engine's description of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxInfo {
    /// Its id.
    pub id: SandboxId,
    /// Its state.
    pub state: SandboxState,
    /// Name of the template it was made from.
    pub template: String,
    /// Its labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Whether it is deleted with the connection that made it.
    #[serde(default)]
    pub ephemeral: bool,
    /// How much of the host it may use.
    pub limits: Limits,
    /// Its first process, as seen from the host.
    pub init: Option<ProcessKey>,
    /// First host user id of its range.
    pub first_uid: Option<u32>,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// When its first process last started, in milliseconds since 1970.
    pub started_ms: Option<u64>,
    /// Why it stopped or was paused without a request; while it runs, what was repaired when it started.
    pub reason: Option<String>,
    /// What this host could not give it, as sentences for the user. Empty: nothing is missing.
    #[serde(rename = "lacks")]
    pub limitations: Vec<String>,
}

/// What a sandbox uses. `None`: this host does not count it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxStats {
    /// Memory in bytes, page cache included.
    pub memory_bytes: Option<u64>,
    /// Page cache in bytes, part of `memory_bytes`.
    pub memory_cache_bytes: Option<u64>,
    /// Processor time used so far, in microseconds.
    pub cpu_usage_us: Option<u64>,
    /// Number of processes and threads.
    pub pids: Option<u64>,
    /// Bytes written on top of the template.
    pub disk_bytes: u64,
    /// Number of processes the kernel killed because the memory limit was reached.
    pub oom_kills: Option<u64>,
}
