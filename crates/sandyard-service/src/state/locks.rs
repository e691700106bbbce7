//! A lock for each sandbox, within this server.
//!
//! The claim in the store excludes other servers. This lock queues the callers of one server, so that they do not all poll the store.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use sandyard_core::SandboxId;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// Locks by key: a sandbox's id, or a name.
#[derive(Debug)]
pub(crate) struct Locks<K = SandboxId> {
    locks: Mutex<HashMap<K, Weak<AsyncMutex<()>>>>,
}

impl<K> Default for Locks<K> {
    fn default() -> Self {
        Self {
            locks: Mutex::default(),
        }
    }
}

impl<K: Clone + Eq + Hash> Locks<K> {
    /// Waits for the lock.
    pub(crate) async fn lock(&self, id: &K) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.locks.lock();
            if locks.len() > 1024 {
                locks.retain(|_, lock| lock.strong_count() > 0);
            }
            match locks.get(id).and_then(Weak::upgrade) {
                Some(lock) => lock,
                None => {
                    let lock = Arc::new(AsyncMutex::new(()));
                    locks.insert(id.clone(), Arc::downgrade(&lock));
                    lock
                }
            }
        };
        lock.lock_owned().await
    }
}
