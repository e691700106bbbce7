//! The state of a sandbox at its provider.
//!
//! ```text
//!             ┌────────── failed step: undone, nothing left ───────────┐
//!             │                                                        ▼
//!  create ─▶ creating ─▶ running ◀──── thaw / freeze ────▶ paused   (gone)
//!                         │   ▲                              │         ▲
//!              stop, or   │   │ start                        │ stop    │
//!            first process▼   │                              ▼         │
//!                 died   stopped ◀──────────────────────── stopped     │
//!                         │                                            │
//!   every state ──────────┴────── delete ──▶ deleting ─────────────────┘
//! ```
//!
//! A live worker holds the states `creating` and `deleting`. A sandbox in one of them without a worker is left from a crash, and the next
//! sweep finishes its removal.

use serde::{Deserialize, Serialize};

/// The state of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxState {
    /// It is being created, and not usable yet.
    Creating,
    /// Its agent answers.
    Running,
    /// Frozen, its memory kept. It uses no processor time.
    Paused,
    /// No process is left; its files are kept.
    Stopped,
    /// It is being removed.
    Deleting,
}

impl SandboxState {
    /// Says whether the diagram above has the transition to `next`.
    pub fn can_become(self, next: Self) -> bool {
        use SandboxState::{Creating, Deleting, Paused, Running, Stopped};
        matches!(
            (self, next),
            (_, Deleting)
                | (Creating, Running)
                | (Running, Paused | Stopped)
                | (Paused, Running | Stopped)
                | (Stopped, Running)
        )
    }

    /// Says whether it has processes, frozen or not.
    pub fn is_live(self) -> bool {
        matches!(self, Self::Running | Self::Paused)
    }
}

#[cfg(test)]
mod tests {
    use super::SandboxState::{self, Creating, Deleting, Paused, Running, Stopped};

    const ALL: [SandboxState; 5] = [Creating, Running, Paused, Stopped, Deleting];

    #[test]
    fn every_state_can_be_deleted() {
        assert!(ALL.iter().all(|state| state.can_become(Deleting)));
    }

    #[test]
    fn nothing_comes_back_from_deleting() {
        assert!(
            ALL.iter()
                .filter(|next| **next != Deleting)
                .all(|next| !Deleting.can_become(*next))
        );
    }

    #[test]
    fn a_stopped_sandbox_cannot_be_frozen() {
        assert!(!Stopped.can_become(Paused));
    }
}
