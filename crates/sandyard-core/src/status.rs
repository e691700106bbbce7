//! The status of a sandbox in the store: what the sandbox *should* be.
//!
//! ```text
//!  create ─▶ creating ──▶ running ◀─── pause / wake ───▶ paused
//!               │           │  ▲                           │
//!        failed │           │  └── start ── stopped ◀──────┤ stop, or its processes ended
//!               │           ▼                │             │
//!               │         error ◀────────────┴─────────────┘ its instance is gone
//!               ▼           │
//!   every one ──┴───────────┴─ delete ──▶ deleting ──▶ deleted (the row stays for a while, the events longer)
//! ```
//!
//! [`SandboxState`](crate::SandboxState) is what the sandbox *is* at its provider. The reconciler closes the gap. The complete table is
//! [`TRANSITIONS`]; docs/design/lifecycle.md shows it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Every transition between two statuses: from, to, and what causes it. A commit with any other transition is refused.
pub const TRANSITIONS: [(SandboxStatus, SandboxStatus, &str); 18] = {
    use SandboxStatus::{Creating, Deleted, Deleting, Error, Paused, Running, Stopped};
    [
        (Creating, Running, "the provider made the instance"),
        (Creating, Deleting, "create failed, or was interrupted"),
        (Running, Paused, "pause, or its timeout"),
        (
            Running,
            Stopped,
            "stop, its timeout, or its processes ended",
        ),
        (Running, Error, "its instance is gone"),
        (Running, Deleting, "delete, or its timeout"),
        (Paused, Running, "wake, or the provider cannot pause it"),
        (Paused, Stopped, "stop, or its processes ended"),
        (Paused, Error, "its instance is gone"),
        (Paused, Deleting, "delete, or its retention is over"),
        (Stopped, Running, "start"),
        (Stopped, Error, "its instance is gone"),
        (Stopped, Deleting, "delete, or its retention is over"),
        (Error, Running, "its instance is back and runs"),
        (Error, Paused, "its instance is back and is paused"),
        (Error, Stopped, "its instance is back and is stopped"),
        (Error, Deleting, "delete, or its retention is over"),
        (Deleting, Deleted, "its instance is removed"),
    ]
};

/// The status of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxStatus {
    /// The provider is making it; the create request has no answer yet.
    Creating,
    /// Usable.
    Running,
    /// Frozen, its memory kept. A request wakes it.
    Paused,
    /// No process is left; its files are kept. A request starts it again.
    Stopped,
    /// It cannot be used, for the `reason` in its row. It can be deleted.
    Error,
    /// Its instance is being removed. After a crash the removal is finished.
    Deleting,
    /// Only its row and its events are left.
    Deleted,
}

impl SandboxStatus {
    /// All statuses, in the order of a sandbox's life.
    pub const ALL: [Self; 7] = [
        Self::Creating,
        Self::Running,
        Self::Paused,
        Self::Stopped,
        Self::Error,
        Self::Deleting,
        Self::Deleted,
    ];

    /// The name in the store and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
            Self::Error => "error",
            Self::Deleting => "deleting",
            Self::Deleted => "deleted",
        }
    }

    /// Says whether [`TRANSITIONS`] has the transition from this status to `next`.
    pub fn can_become(self, next: Self) -> bool {
        TRANSITIONS
            .iter()
            .any(|(from, to, _)| (*from, *to) == (self, next))
    }

    /// Says whether the sandbox is neither deleted nor being deleted.
    pub fn is_present(self) -> bool {
        !matches!(self, Self::Deleting | Self::Deleted)
    }

    /// Says whether the sandbox runs, or is being created.
    pub fn is_up(self) -> bool {
        matches!(self, Self::Running | Self::Creating)
    }

    /// Says whether a request may bring it back to `running`.
    pub fn can_wake(self) -> bool {
        matches!(self, Self::Paused | Self::Stopped)
    }
}

impl fmt::Display for SandboxStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that is not the name of a status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a sandbox status")]
pub struct SandboxStatusError(pub String);

impl FromStr for SandboxStatus {
    type Err = SandboxStatusError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| SandboxStatusError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_the_deleted_can_be_deleted() {
        for status in SandboxStatus::ALL {
            let is_gone = status == SandboxStatus::Deleted || status == SandboxStatus::Deleting;
            assert_eq!(status.can_become(SandboxStatus::Deleting), !is_gone);
        }
    }

    #[test]
    fn names_are_parsed_back() {
        for status in SandboxStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
        }
    }
}
