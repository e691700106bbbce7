//! Where a sandbox stands in the eyes of its users: what the store says *should* be.
//!
//! ```text
//!  create ─▶ creating ──▶ running ◀─── pause / wake ───▶ paused
//!               │           │  ▲                           │
//!        failed │           │  └── start ── stopped ◀──────┤ stop, or its processes vanished
//!               ▼           ▼                │             │
//!             error ◀─── (unmendable)        │             │
//!               │                            │             │
//!   every one ──┴────────── delete ──▶ deleting ──▶ deleted (the row stays a while, the events longer)
//! ```
//!
//! [`SandboxState`](crate::SandboxState) is the same question asked of the provider: what *is*. Reconcilers close the gap.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a sandbox should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxStatus {
    /// On its way; its maker has no answer yet.
    Creating,
    /// Usable.
    Running,
    /// Frozen with its memory kept; any request wakes it.
    Paused,
    /// No process is left, its files are kept; any request starts it again.
    Stopped,
    /// It cannot be used; `reason` says why. It can be deleted.
    Error,
    /// On its way out; a crash does not stop that.
    Deleting,
    /// Nothing of it is left but its history.
    Deleted,
}

impl SandboxStatus {
    /// All of them, in the order of a life.
    pub const ALL: [Self; 7] = [
        Self::Creating,
        Self::Running,
        Self::Paused,
        Self::Stopped,
        Self::Error,
        Self::Deleting,
        Self::Deleted,
    ];

    /// The word in the store.
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

    /// Says whether the move from here to `next` is one of the arrows above.
    pub fn can_become(self, next: Self) -> bool {
        use SandboxStatus::{Creating, Deleted, Deleting, Error, Paused, Running, Stopped};
        match (self, next) {
            (Deleted, _) => false,
            (Deleting, next) => next == Deleted,
            (_, Deleting) => true,
            (Creating, Running | Error) => true,
            (Running, Paused | Stopped | Error) => true,
            (Paused | Stopped, Running | Stopped | Error) => true,
            // Somebody mended the host.
            (Error, Running | Paused | Stopped) => true,
            _ => false,
        }
    }

    /// Says whether the sandbox is neither deleted nor being deleted.
    pub fn is_present(self) -> bool {
        !matches!(self, Self::Deleting | Self::Deleted)
    }

    /// Says whether the sandbox runs, or is being created.
    pub fn is_up(self) -> bool {
        matches!(self, Self::Running | Self::Creating)
    }

    /// Says whether a request may bring it back to running.
    pub fn can_wake(self) -> bool {
        matches!(self, Self::Paused | Self::Stopped)
    }
}

impl fmt::Display for SandboxStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Says that a text is no status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no sandbox status")]
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
    fn words_are_read_back() {
        for status in SandboxStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
        }
    }
}
