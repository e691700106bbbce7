//! A lock for each sandbox, within this server.
//!
//! The claim in the store is what keeps two servers apart. This lock makes the many callers of one server wait in a line
//! for it, instead of all asking the store again and again.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use sandyard_core::SandboxId;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// Locks by key: a sandbox, or a name.
#[derive(Debug)]
pub(crate) struct Locks<K = SandboxId> {
    held: Mutex<HashMap<K, Weak<AsyncMutex<()>>>>,
}

impl<K> Default for Locks<K> {
    fn default() -> Self {
        Self {
            held: Mutex::default(),
        }
    }
}

impl<K: Clone + Eq + Hash> Locks<K> {
    /// Waits for the turn.
    pub(crate) async fn lock(&self, id: &K) -> OwnedMutexGuard<()> {
        let lock = {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            if held.len() > 1024 {
                held.retain(|_, lock| lock.strong_count() > 0);
            }
            match held.get(id).and_then(Weak::upgrade) {
                Some(lock) => lock,
                None => {
                    let lock = Arc::new(AsyncMutex::new(()));
                    held.insert(id.clone(), Arc::downgrade(&lock));
                    lock
                }
            }
        };
        lock.lock_owned().await
    }
}
