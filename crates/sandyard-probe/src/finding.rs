//! What one check found, in the words a person reads.

use serde::{Deserialize, Serialize};

/// One check's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable name, `group.what`, for scripts and for talking about it.
    pub id: String,
    /// The promise in a few words.
    pub title: String,
    /// The chapter of the report it belongs to.
    pub group: Group,
    /// What the hostile program did.
    pub what_was_tried: String,
    /// What a sandbox that holds answers.
    pub expected: String,
    /// What it answered.
    pub observed: String,
    /// Whether the promise was kept.
    pub verdict: Verdict,
    /// How bad a breach of it is.
    pub severity: Severity,
}

/// Whether a promise was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The attempt gave nothing.
    Held,
    /// The attempt reached something it must not.
    Breached,
    /// The check could not be made, so nothing is known.
    Inconclusive,
}

/// How bad a breach is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The sandbox learns something about the host that helps little.
    Low,
    /// A layer of defence is missing behind others that hold.
    Medium,
    /// A privilege is regained or a neighbour disturbed; one more mistake makes it an escape.
    High,
    /// The host or another sandbox is reached: an escape.
    Critical,
}

/// A chapter of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Files of the host.
    Files,
    /// The mount table, and read-only mounts.
    Mounts,
    /// Kernel knobs below /proc and /sys, and cgroups.
    Knobs,
    /// Device nodes.
    Devices,
    /// Processes of the host, and the agent.
    Processes,
    /// Namespaces, capabilities, keys.
    Privileges,
    /// Kernel interfaces nobody inside needs.
    Kernel,
    /// Addresses and ports.
    Network,
    /// Unix sockets, shared memory and message queues.
    Ipc,
    /// Limits under attack.
    Resources,
    /// What the host sees of it all afterwards.
    Host,
}

impl Group {
    /// Every group in the order of the report.
    pub const ALL: [Self; 11] = [
        Self::Files,
        Self::Mounts,
        Self::Knobs,
        Self::Devices,
        Self::Processes,
        Self::Privileges,
        Self::Kernel,
        Self::Network,
        Self::Ipc,
        Self::Resources,
        Self::Host,
    ];

    /// The heading of its chapter.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Files => "Files of the host",
            Self::Mounts => "Mounts",
            Self::Knobs => "Kernel knobs and cgroups",
            Self::Devices => "Devices",
            Self::Processes => "Processes",
            Self::Privileges => "Namespaces and privileges",
            Self::Kernel => "Kernel attack surface",
            Self::Network => "Network",
            Self::Ipc => "Sockets, shared memory, queues",
            Self::Resources => "Resources",
            Self::Host => "The host afterwards",
        }
    }
}
