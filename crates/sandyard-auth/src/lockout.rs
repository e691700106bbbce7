//! Slows down guessing: one login per name at a time, and unknown names are locked like known ones.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;

use tokio::sync::{Mutex as AsyncMutex, MutexGuard, Semaphore, SemaphorePermit};

use crate::error::{AuthError, Result};

/// Most concurrent logins, including those that wait.
const MAX_LOGINS: usize = 64;
const LOCKS: usize = 64;
/// Most unknown names that are tracked.
const MAX_UNKNOWN: usize = 4096;

/// Queues logins and counts failures of unknown names.
pub(crate) struct Lockout {
    slots: Semaphore,
    /// Names share a fixed number of locks. Which names share one is random.
    locks: Vec<AsyncMutex<()>>,
    hasher: RandomState,
    unknown: Mutex<HashMap<String, UnknownName>>,
}

/// A name that no user has. It is locked too, so that a lock does not reveal which users exist.
#[derive(Default)]
struct UnknownName {
    failures: u32,
    locked_until_ms: i64,
}

/// The exclusive right to try a login of a name on this server, so that parallel guesses are counted one by one.
pub(crate) struct LoginGuard<'a> {
    _slot: SemaphorePermit<'a>,
    _lock: MutexGuard<'a, ()>,
}

impl Lockout {
    pub(crate) fn new() -> Self {
        Self {
            slots: Semaphore::new(MAX_LOGINS),
            locks: std::iter::repeat_with(AsyncMutex::default)
                .take(LOCKS)
                .collect(),
            hasher: RandomState::new(),
            unknown: Mutex::default(),
        }
    }

    /// Waits for other logins of the name. Fails if too many logins wait.
    pub(crate) async fn lock(&self, name: &str) -> Result<LoginGuard<'_>> {
        let slot = self
            .slots
            .try_acquire()
            .map_err(|_| AuthError::TooManyLogins)?;
        let index = self.hasher.hash_one(name) as usize % LOCKS;
        Ok(LoginGuard {
            _slot: slot,
            _lock: self.locks[index].lock().await,
        })
    }

    /// Until when an unknown name is locked, in milliseconds since 1970.
    pub(crate) fn unknown_locked_until_ms(&self, name: &str) -> Option<i64> {
        self.unknown()
            .get(name)
            .map(|unknown| unknown.locked_until_ms)
    }

    /// Counts a failed login of an unknown name, as the store does for known ones.
    pub(crate) fn count_unknown_failure(
        &self,
        name: &str,
        max_failures: u32,
        now_ms: i64,
        until_ms: i64,
    ) {
        let mut unknown = self.unknown();
        if unknown.len() >= MAX_UNKNOWN {
            unknown.retain(|_, name| name.locked_until_ms > now_ms);
        }
        if unknown.len() >= MAX_UNKNOWN {
            unknown.clear();
        }
        let entry = unknown.entry(name.to_owned()).or_default();
        entry.failures += 1;
        if entry.failures >= max_failures {
            *entry = UnknownName {
                failures: 0,
                locked_until_ms: until_ms,
            };
        }
    }

    /// Forgets an unknown name that a new user has now.
    pub(crate) fn forget_unknown(&self, name: &str) {
        self.unknown().remove(name);
    }

    fn unknown(&self) -> std::sync::MutexGuard<'_, HashMap<String, UnknownName>> {
        self.unknown
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_locked_at_the_last_failure() {
        let lockout = Lockout::new();
        for _ in 0..2 {
            lockout.count_unknown_failure("ghost", 3, 10, 100);
            assert_eq!(lockout.unknown_locked_until_ms("ghost"), Some(0));
        }
        lockout.count_unknown_failure("ghost", 3, 10, 100);
        assert_eq!(lockout.unknown_locked_until_ms("ghost"), Some(100));
        lockout.forget_unknown("ghost");
        assert_eq!(lockout.unknown_locked_until_ms("ghost"), None);
    }

    #[test]
    fn unknown_names_are_bounded() {
        let lockout = Lockout::new();
        for number in 0..3 * MAX_UNKNOWN {
            lockout.count_unknown_failure(&number.to_string(), 1, 10, 100);
        }
        assert!(lockout.unknown().len() <= MAX_UNKNOWN);
    }

    #[tokio::test]
    async fn too_many_concurrent_logins_are_refused() {
        let lockout = Lockout::new();
        let mut waiting: Vec<_> = std::iter::repeat_with(|| Box::pin(lockout.lock("alice")))
            .take(MAX_LOGINS)
            .collect();
        // Each is polled once: the first gets the lock, the others wait for it with a slot taken.
        let mut guards = Vec::new();
        for attempt in &mut waiting {
            tokio::select! {
                biased;
                guard = attempt => guards.push(guard.unwrap()),
                () = std::future::ready(()) => {}
            }
        }
        assert_eq!(guards.len(), 1);
        assert!(matches!(
            lockout.lock("bob").await,
            Err(AuthError::TooManyLogins)
        ));
    }
}
