//! Where a sandbox stands and where it may go next.
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
//! `creating` and `deleting` are held by a live worker; one found without its worker is a crash's remains, and the next
//! sweep finishes the undoing.

use serde::{Deserialize, Serialize};

/// Where a sandbox stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxState {
    /// Its steps are being taken; not usable yet.
    Creating,
    /// Its agent answers.
    Running,
    /// Frozen with its memory kept; costs no processor time.
    Paused,
    /// No process is left; its files are kept.
    Stopped,
    /// Its steps are being undone.
    Deleting,
}

impl SandboxState {
    /// Says whether the move from here to `next` is one of the arrows above.
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

    /// Says whether processes of it exist, frozen or not.
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
