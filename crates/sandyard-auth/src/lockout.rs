//! Keeps guessing slow: one login of a name at a time, and names that nobody has lock like real ones.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;

use tokio::sync::{Mutex as Lane, MutexGuard, Semaphore, SemaphorePermit};

use crate::error::AuthError;

/// How many logins may wait or work at once.
const MAX_LOGINS: usize = 64;
const LANES: usize = 64;
/// How many names that nobody has are remembered.
const MAX_STRANGERS: usize = 4096;

/// The waiting room of the logins.
pub(crate) struct Lockout {
    places: Semaphore,
    /// Names share lanes, so that there is a fixed number; which ones share cannot be foreseen.
    lanes: Vec<Lane<()>>,
    hasher: RandomState,
    strangers: Mutex<HashMap<String, Stranger>>,
}

/// A name that nobody has. That it locks too keeps the lock from telling who exists.
#[derive(Default)]
struct Stranger {
    failures: u32,
    locked_until_ms: i64,
}

/// The right to try one login of a name, alone on this server: guesses sent in parallel are counted one by one.
pub(crate) struct Turn<'a> {
    _place: SemaphorePermit<'a>,
    _lane: MutexGuard<'a, ()>,
}

impl Lockout {
    pub(crate) fn new() -> Self {
        Self {
            places: Semaphore::new(MAX_LOGINS),
            lanes: std::iter::repeat_with(Lane::default).take(LANES).collect(),
            hasher: RandomState::new(),
            strangers: Mutex::default(),
        }
    }

    /// Waits for one's turn, unless too many wait already.
    pub(crate) async fn turn(&self, name: &str) -> Result<Turn<'_>, AuthError> {
        let place = self
            .places
            .try_acquire()
            .map_err(|_| AuthError::TooManyLogins)?;
        let lane = self.hasher.hash_one(name) as usize % LANES;
        Ok(Turn {
            _place: place,
            _lane: self.lanes[lane].lock().await,
        })
    }

    /// Until when a name that nobody has is locked.
    pub(crate) fn stranger_locked_until_ms(&self, name: &str) -> Option<i64> {
        self.strangers().get(name).map(|it| it.locked_until_ms)
    }

    /// Counts a failure of a name that nobody has, as the store does for the others.
    pub(crate) fn note_stranger(&self, name: &str, max_failures: u32, now_ms: i64, until_ms: i64) {
        let mut strangers = self.strangers();
        if strangers.len() >= MAX_STRANGERS {
            strangers.retain(|_, it| it.locked_until_ms > now_ms);
        }
        if strangers.len() >= MAX_STRANGERS {
            strangers.clear();
        }
        let stranger = strangers.entry(name.to_owned()).or_default();
        stranger.failures += 1;
        if stranger.failures >= max_failures {
            *stranger = Stranger {
                failures: 0,
                locked_until_ms: until_ms,
            };
        }
    }

    /// Somebody has that name now.
    pub(crate) fn forget_stranger(&self, name: &str) {
        self.strangers().remove(name);
    }

    fn strangers(&self) -> std::sync::MutexGuard<'_, HashMap<String, Stranger>> {
        self.strangers
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_locks_at_the_last_failure() {
        let lockout = Lockout::new();
        for _ in 0..2 {
            lockout.note_stranger("ghost", 3, 10, 100);
            assert_eq!(lockout.stranger_locked_until_ms("ghost"), Some(0));
        }
        lockout.note_stranger("ghost", 3, 10, 100);
        assert_eq!(lockout.stranger_locked_until_ms("ghost"), Some(100));
        lockout.forget_stranger("ghost");
        assert_eq!(lockout.stranger_locked_until_ms("ghost"), None);
    }

    #[test]
    fn strangers_are_bounded() {
        let lockout = Lockout::new();
        for number in 0..3 * MAX_STRANGERS {
            lockout.note_stranger(&number.to_string(), 1, 10, 100);
        }
        assert!(lockout.strangers().len() <= MAX_STRANGERS);
    }

    #[tokio::test]
    async fn too_many_at_once_are_turned_away() {
        let lockout = Lockout::new();
        let mut waiting: Vec<_> = std::iter::repeat_with(|| Box::pin(lockout.turn("alice")))
            .take(MAX_LOGINS)
            .collect();
        // Poll each once: the first gets its turn, the others wait in the lane with a place taken.
        let mut turns = Vec::new();
        for attempt in &mut waiting {
            tokio::select! {
                biased;
                turn = attempt => turns.push(turn.unwrap()),
                () = std::future::ready(()) => {}
            }
        }
        assert_eq!(turns.len(), 1);
        assert!(matches!(
            lockout.turn("bob").await,
            Err(AuthError::TooManyLogins)
        ));
    }
}
