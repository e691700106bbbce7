//! Which network grants this process has pushed to providers.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;
use sandyard_core::SandboxId;
use tokio::sync::OwnedMutexGuard;

use super::locks::Locks;

/// A digest of everything that makes one grant differ from another.
pub(crate) type GrantDigest = [u8; 32];

/// What this process has pushed.
#[derive(Debug, Default)]
pub(crate) struct PushedGrants {
    /// By sandbox: its location and the digest of its grant.
    pushed: Mutex<HashMap<SandboxId, (String, GrantDigest)>>,
    locks: Locks,
}

impl PushedGrants {
    /// Forgets what was pushed for a sandbox, so that the next pass pushes it again.
    pub(crate) fn forget(&self, id: &SandboxId) {
        self.pushed.lock().remove(id);
    }

    /// Forgets the sandboxes of a location that are not among `present`.
    pub(crate) fn retain(&self, location: &str, present: &HashSet<&SandboxId>) {
        self.pushed
            .lock()
            .retain(|id, (known, _)| known != location || present.contains(id));
    }

    pub(crate) fn insert(&self, id: &SandboxId, location: &str, digest: GrantDigest) {
        let pushed = (location.to_owned(), digest);
        self.pushed.lock().insert(id.clone(), pushed);
    }

    pub(crate) fn has(&self, id: &SandboxId, digest: &GrantDigest) -> bool {
        self.pushed
            .lock()
            .get(id)
            .is_some_and(|(_, pushed)| pushed == digest)
    }

    /// Waits until no other push for a sandbox is under way.
    pub(crate) async fn lock(&self, id: &SandboxId) -> OwnedMutexGuard<()> {
        self.locks.lock(id).await
    }
}
