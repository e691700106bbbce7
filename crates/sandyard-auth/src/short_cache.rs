//! A cache of what the store has said a moment ago.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Values by name. An entry expires after `ttl_ms`; a change on this server clears the cache at once.
pub(crate) struct ShortCache<V> {
    ttl_ms: i64,
    max: usize,
    entries: Mutex<Entries<V>>,
}

struct Entries<V> {
    /// Each value and when it was read.
    by_name: HashMap<String, (V, i64)>,
    /// Counts clears, so that a value that was read before a clear is not inserted after it.
    generation: u64,
}

/// The clear before which a look-up began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Generation(u64);

impl<V: Clone> ShortCache<V> {
    /// A cache of at most `max` entries.
    pub(crate) fn new(ttl_ms: i64, max: usize) -> Self {
        let entries = Entries {
            by_name: HashMap::new(),
            generation: 0,
        };
        Self {
            ttl_ms,
            max,
            entries: Mutex::new(entries),
        }
    }

    /// A value that was read within the last `ttl_ms`; else the generation to insert one with, after the store was asked.
    pub(crate) fn find(&self, name: &str, now_ms: i64) -> Result<V, Generation> {
        let entries = self.entries();
        entries
            .by_name
            .get(name)
            // The clock may have been set back: an entry from the future has expired too.
            .filter(|(_, read_ms)| {
                (*read_ms..read_ms.saturating_add(self.ttl_ms)).contains(&now_ms)
            })
            .map(|(value, _)| value.clone())
            .ok_or(Generation(entries.generation))
    }

    /// Inserts what the store has said, unless the cache was cleared meanwhile.
    pub(crate) fn insert(&self, since: Generation, name: &str, value: V, read_ms: i64) {
        let mut entries = self.entries();
        if entries.generation != since.0 {
            return;
        }
        if entries.by_name.len() >= self.max {
            entries.by_name.clear();
        }
        entries.by_name.insert(name.to_owned(), (value, read_ms));
    }

    /// Changes a cached value, expired or not; none if there is none.
    pub(crate) fn update<T>(&self, name: &str, change: impl FnOnce(&mut V) -> T) -> Option<T> {
        let mut entries = self.entries();
        entries
            .by_name
            .get_mut(name)
            .map(|(value, _)| change(value))
    }

    /// Removes all entries.
    pub(crate) fn clear(&self) {
        let mut entries = self.entries();
        entries.generation += 1;
        entries.by_name.clear();
    }

    fn entries(&self) -> MutexGuard<'_, Entries<V>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_entry() -> ShortCache<u8> {
        let cache = ShortCache::new(1000, 10);
        let since = cache.find("a", 5000).unwrap_err();
        cache.insert(since, "a", 7, 5000);
        cache
    }

    #[test]
    fn an_entry_expires_and_is_unused_after_the_clock_was_set_back() {
        let cache = with_entry();
        assert_eq!(cache.find("a", 5999).ok(), Some(7));
        assert_eq!(cache.find("a", 6000).ok(), None);
        assert_eq!(cache.find("a", 4999).ok(), None, "the clock was set back");
        assert_eq!(cache.find("other", 5000).ok(), None);
    }

    #[test]
    fn a_look_up_that_began_before_a_clear_is_not_inserted() {
        let cache = with_entry();
        let before = cache.find("b", 5000).unwrap_err();
        cache.clear();
        cache.insert(before, "b", 7, 5000);
        assert_eq!(cache.find("a", 5000).ok(), None);
        assert_eq!(cache.find("b", 5000).ok(), None);
    }

    #[test]
    fn the_number_of_entries_is_bounded() {
        let cache = with_entry();
        let since = cache.find("b", 5000).unwrap_err();
        for number in 0..100 {
            cache.insert(since, &number.to_string(), 7, 5000);
        }
        assert!(cache.entries().by_name.len() <= 10);
    }
}
