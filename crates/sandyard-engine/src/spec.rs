//! What a caller asks for, and what it gets to know.

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
    /// What it starts from.
    pub template: String,
    /// How much of the host it may use.
    pub limits: Limits,
    /// Variables every command in it gets. They may be secrets: never logged. Those that make programs trust the gateway
    /// (`SSL_CERT_FILE` and the like) are added where they are not set.
    pub env: BTreeMap<String, String>,
    /// Asked of whoever talks to the agent from inside or through a port. None: nobody may.
    pub access_token: Option<String>,
    /// Its host name; its id when none is given.
    pub hostname: Option<String>,
    /// What its maker writes on it, to find it again. Not secret, and nothing the sandbox gets to see.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Volumes in it. None of their files are in snapshots, differences and forks; a fork has the same volumes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<MountSpec>,
    /// Delete it when the connection that made it closes, however that happens.
    pub ephemeral: bool,
}

/// A volume in a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MountSpec {
    /// The volume's id.
    pub volume: String,
    /// Where, as seen inside: absolute, and not below `/proc`, `/sys` or `/dev`. Made if it is missing; no link is followed.
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

/// How a fork is to differ from the sandbox it is made from. Files, limits and volumes are the same.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ForkSpec {
    /// Variables every command in it gets; the other's when none are given.
    pub env: Option<BTreeMap<String, String>>,
    /// Asked of whoever talks to its agent; a new one when none is given, so that who may use one may not use both.
    pub access_token: Option<String>,
    /// Its host name; its id when none is given.
    pub hostname: Option<String>,
    /// What its maker writes on it. Never the other's: they say who that one is.
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

/// What the engine tells about a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxInfo {
    /// Its name.
    pub id: SandboxId,
    /// Where it stands.
    pub state: SandboxState,
    /// What it was made from.
    pub template: String,
    /// What its maker wrote on it.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Whether it goes with the connection that made it.
    #[serde(default)]
    pub ephemeral: bool,
    /// How much of the host it may use.
    pub limits: Limits,
    /// Its first process, seen from the host.
    pub init: Option<ProcessKey>,
    /// First host user id of its range.
    pub first_uid: Option<u32>,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// When its first process last started.
    pub started_ms: Option<u64>,
    /// Why it stopped or was paused, when nobody asked for that; while it runs, what was repaired when it started.
    pub reason: Option<String>,
    /// What this host could not give it, in words. Empty: everything holds.
    pub lacks: Vec<String>,
}

/// What a sandbox uses at the moment. Absent: this host does not count it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxStats {
    /// Memory in bytes, page cache included.
    pub memory_bytes: Option<u64>,
    /// Page cache in it.
    pub memory_cache_bytes: Option<u64>,
    /// Processor time used so far, in microseconds.
    pub cpu_usage_us: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
    /// Bytes written on top of the template.
    pub disk_bytes: u64,
    /// Processes the kernel killed for want of memory.
    pub oom_kills: Option<u64>,
}
