//! Remembers keys for a moment, so that a program that asks often costs the store little.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sandyard_store::model::{ApiKey, User};

/// How long another server's revocation may go unseen here. Our own is seen at once.
const LIFE_MS: i64 = 1000;
const TOUCH_EVERY_MS: i64 = 60_000;
const MAX_KEYS: usize = 4096;

/// Keys lately used, by hash. Unknown keys are not kept: nobody can fill it by guessing.
#[derive(Default)]
pub(crate) struct KeyCache(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    keys: HashMap<String, Entry>,
    /// Counts what was forgotten, so that a look-up that began before is not kept after.
    generation: u64,
}

struct Entry {
    key: ApiKey,
    user: User,
    read_ms: i64,
}

/// Before which forgetting a look-up began.
#[derive(Clone, Copy)]
pub(crate) struct Generation(u64);

impl KeyCache {
    /// Finds a key that was looked up a moment ago.
    pub(crate) fn find(&self, hash: &str, now_ms: i64) -> Option<(ApiKey, User)> {
        let kept = self.kept();
        let entry = kept.keys.get(hash)?;
        // A host's clock may be set back; what is from the future is not fresh.
        (entry.read_ms..entry.read_ms.saturating_add(LIFE_MS))
            .contains(&now_ms)
            .then(|| (entry.key.clone(), entry.user.clone()))
    }

    /// To be asked before the store is.
    pub(crate) fn generation(&self) -> Generation {
        Generation(self.kept().generation)
    }

    /// Keeps what the store said, unless something was forgotten meanwhile.
    pub(crate) fn keep(&self, since: Generation, hash: &str, found: &(ApiKey, User), read_ms: i64) {
        let mut kept = self.kept();
        if kept.generation != since.0 {
            return;
        }
        if kept.keys.len() >= MAX_KEYS {
            kept.keys.clear();
        }
        let (key, user) = found.clone();
        kept.keys
            .insert(hash.to_owned(), Entry { key, user, read_ms });
    }

    /// Says whether the use of a key is to be noted in the store: once a minute. Says so to one asker only.
    pub(crate) fn is_touch_due(&self, hash: &str, key: &ApiKey, now_ms: i64) -> bool {
        let is_due = |last: Option<i64>| last.is_none_or(|last| last + TOUCH_EVERY_MS <= now_ms);
        match self.kept().keys.get_mut(hash) {
            Some(entry) if is_due(entry.key.last_used_ms) => {
                entry.key.last_used_ms = Some(now_ms);
                true
            }
            Some(_) => false,
            None => is_due(key.last_used_ms),
        }
    }

    /// Forgets all: keys or users changed. It fills again at the price of one look-up a key.
    pub(crate) fn forget(&self) {
        let mut kept = self.kept();
        kept.generation += 1;
        kept.keys.clear();
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandyard_core::{Role, Scope};

    fn found() -> (ApiKey, User) {
        let key = ApiKey {
            id: "k1".to_owned(),
            owner: "alice".to_owned(),
            name: "test".to_owned(),
            mask: String::new(),
            scopes: vec![Scope::Read],
            created_ms: 0,
            expires_ms: None,
            last_used_ms: None,
            revoked_ms: None,
        };
        let user = User {
            name: "alice".to_owned(),
            password_hash: None,
            role: Role::User,
            is_disabled: false,
            max_sandboxes: None,
            failures: 0,
            locked_until_ms: None,
            created_ms: 0,
        };
        (key, user)
    }

    #[test]
    fn a_key_is_kept_for_a_second() {
        let cache = KeyCache::default();
        cache.keep(cache.generation(), "h", &found(), 5000);
        assert_eq!(cache.find("h", 5999), Some(found()));
        assert_eq!(cache.find("h", 6000), None);
        assert_eq!(cache.find("h", 4999), None, "the clock was set back");
        assert_eq!(cache.find("other", 5000), None);
    }

    #[test]
    fn a_look_up_begun_before_a_revocation_is_not_kept() {
        let cache = KeyCache::default();
        let before = cache.generation();
        cache.forget();
        cache.keep(before, "h", &found(), 5000);
        assert_eq!(cache.find("h", 5000), None);
    }

    #[test]
    fn use_is_noted_once_a_minute() {
        let cache = KeyCache::default();
        cache.keep(cache.generation(), "h", &found(), 5000);
        let (key, _) = found();
        assert!(cache.is_touch_due("h", &key, 5000));
        assert!(!cache.is_touch_due("h", &key, 5000));
        assert!(!cache.is_touch_due("h", &key, 64_999));
        assert!(cache.is_touch_due("h", &key, 65_000));
    }

    #[test]
    fn it_is_bounded() {
        let cache = KeyCache::default();
        for number in 0..3 * MAX_KEYS {
            cache.keep(cache.generation(), &number.to_string(), &found(), 5000);
        }
        assert!(cache.kept().keys.len() <= MAX_KEYS);
    }
}
