//! The result of one check, as text for people.

use serde::{Deserialize, Serialize};

/// One check's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable name, `group.what`.
    pub id: String,
    /// The promise in a few words.
    pub title: String,
    /// The chapter of the report it belongs to.
    pub group: Group,
    /// What the hostile program did.
    pub what_was_tried: String,
    /// What happens in a secure sandbox.
    pub expected: String,
    /// What happened.
    pub observed: String,
    /// Whether the sandbox held.
    pub verdict: Verdict,
    /// How bad a breach of it is.
    pub severity: Severity,
}

/// Whether the sandbox held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The attempt failed.
    Held,
    /// The attempt reached something that it must not.
    Breached,
    /// The check could not run, so nothing is known.
    Inconclusive,
}

/// How bad a breach is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The sandbox learns something about the host that is of little use.
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
    /// Kernel settings below /proc and /sys, and cgroups.
    Knobs,
    /// Device nodes.
    Devices,
    /// Processes of the host, and the agent.
    Processes,
    /// Namespaces, capabilities, keys.
    Privileges,
    /// Kernel interfaces that nothing inside needs.
    Kernel,
    /// Addresses and ports.
    Network,
    /// Unix sockets, shared memory and message queues.
    Ipc,
    /// Limits under attack.
    Resources,
    /// Effects on the host, checked afterwards.
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
            Self::Knobs => "Kernel settings and cgroups",
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
