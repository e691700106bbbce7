//! Tells subscribers which sandboxes changed their status on this node. Changes made by other nodes are not told.

use sandyard_core::{SandboxId, SandboxStatus};
use tokio::sync::broadcast;

/// Changes that may wait for a subscriber. One that is further behind learns that it has missed some.
const CAPACITY: usize = 1024;

/// A sandbox and its new status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusChange {
    /// The sandbox.
    pub id: SandboxId,
    /// Its status from now on.
    pub status: SandboxStatus,
}

/// Where status changes are announced.
#[derive(Debug)]
pub(crate) struct StatusChanges(broadcast::Sender<StatusChange>);

impl Default for StatusChanges {
    fn default() -> Self {
        Self(broadcast::Sender::new(CAPACITY))
    }
}

impl StatusChanges {
    /// Announces a change that is in the store.
    pub(crate) fn announce(&self, id: &SandboxId, status: SandboxStatus) {
        let id = id.clone();
        // Without subscribers nobody needs to know.
        let _ = self.0.send(StatusChange { id, status });
    }

    /// Every change from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<StatusChange> {
        self.0.subscribe()
    }
}
