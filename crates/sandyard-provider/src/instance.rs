//! One sandbox as its provider knows it.

use std::collections::BTreeMap;
use std::fmt;

use sandyard_core::{Limits, NetworkPolicy, SandboxId, SandboxState};
use serde::{Deserialize, Serialize};

/// What the service asks a provider for.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceSpec {
    /// The sandbox it is for. The provider writes it on the instance, so that nothing is ever made that nobody finds.
    pub sandbox_id: SandboxId,
    /// What it starts from.
    pub template: String,
    /// How much it may use.
    pub limits: Limits,
    /// Variables every command in it gets. They may be secrets: never logged.
    pub env: BTreeMap<String, String>,
    /// What the agent asks of whoever talks to it from inside or through a port.
    pub access_token: String,
    /// Its host name; the instance's id when none is given.
    pub hostname: Option<String>,
    /// What it may reach, for places that want to know at once; [`set_network`](crate::Provider::set_network) follows in any case.
    #[serde(default)]
    pub network: NetworkPolicy,
    /// Volumes in it.
    #[serde(default)]
    pub mounts: Vec<Mount>,
    /// The project it is for: a folder of that name may be its `/workspace`, where the operator has said so.
    #[serde(default)]
    pub project: Option<String>,
    /// Its maker's own words about it, for places where others look at sandboxes too. As much of it as fits there.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    /// Its maker may start from the default template and from what this installation keeps, and from nothing else that is there.
    #[serde(default)]
    pub is_restricted: bool,
}

/// A volume in an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// The volume's id.
    pub volume: String,
    /// Where, as seen inside; absolute.
    pub path: String,
}

/// A volume to be made: a folder that outlives instances and can be in several of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeSpec {
    /// Its id: letters and digits.
    pub id: String,
    /// How much fits into it, where that can be bounded.
    pub size_bytes: u64,
}

/// What an instance used over some seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UsagePoint {
    /// When.
    pub at_ms: i64,
    /// Processor time used since the point before, in percent of what its limit allows: 100 is all of it, however many
    /// processors that is, as E2B's `cpuUsedPct` counts; the first point after a start has none before it and says zero.
    /// Where nothing holds it to its limit it may be more.
    pub cpu_percent: f32,
    /// Memory in bytes, without page cache.
    pub memory_bytes: u64,
    /// Page cache.
    pub cache_bytes: u64,
    /// Bytes written on top of the template.
    pub disk_bytes: u64,
}

/// How many instances of a template to keep ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Which; none: the default template.
    pub template: Option<String>,
    /// How many.
    pub count: usize,
}

impl fmt::Debug for InstanceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstanceSpec")
            .field("sandbox_id", &self.sandbox_id)
            .field("template", &self.template)
            .field("limits", &self.limits)
            .field("env", &self.env.keys())
            .finish_non_exhaustive()
    }
}

/// What a provider tells of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// The provider's name for it.
    pub id: String,
    /// The sandbox it was made for.
    pub sandbox_id: Option<SandboxId>,
    /// What it is at this moment.
    pub state: SandboxState,
    /// What it was made from.
    pub template: String,
    /// How much it may use.
    pub limits: Limits,
    /// When it was made.
    pub created_ms: i64,
    /// When its first process last started.
    pub started_ms: Option<i64>,
    /// Why it is not running, when nobody asked it not to; while it runs, what was repaired when it started.
    pub reason: Option<String>,
    /// What this place could not give it, in words.
    pub lacks: Vec<String>,
}

/// What an instance uses now. Absent: not counted there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Memory in bytes, page cache included.
    pub memory_bytes: Option<u64>,
    /// Page cache in it.
    pub memory_cache_bytes: Option<u64>,
    /// Processor time used so far, in microseconds.
    pub cpu_usage_us: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
    /// Bytes written on top of the template.
    pub disk_bytes: Option<u64>,
    /// Processes the kernel killed for want of memory.
    pub oom_kills: Option<u64>,
}

/// How a file differs from the template's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// It is not the same.
    Modified,
    /// It is gone.
    Deleted,
}

/// One file that differs from the template's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Where, as seen inside.
    pub path: String,
    /// How.
    pub kind: ChangeKind,
}
