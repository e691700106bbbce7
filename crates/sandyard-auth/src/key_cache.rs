//! Caches keys for a second, so that a program with many requests costs the store little.

use sandyard_store::model::{ApiKey, User};

use crate::short_cache::{Generation, ShortCache};

/// How long a revocation by another server may go unnoticed. This server's own is noticed at once.
const TTL_MS: i64 = 1000;
/// How often the use of a key is saved.
const TOUCH_EVERY_MS: i64 = 60_000;
const MAX_KEYS: usize = 4096;

/// Recently used keys and their users, by hash. Unknown keys are not cached, so that guessing cannot fill it.
pub(crate) struct KeyCache(ShortCache<(ApiKey, User)>);

impl Default for KeyCache {
    fn default() -> Self {
        Self(ShortCache::new(TTL_MS, MAX_KEYS))
    }
}

impl KeyCache {
    /// See [`ShortCache::find`].
    pub(crate) fn find(&self, hash: &str, now_ms: i64) -> Result<(ApiKey, User), Generation> {
        self.0.find(hash, now_ms)
    }

    /// See [`ShortCache::insert`].
    pub(crate) fn insert(
        &self,
        since: Generation,
        hash: &str,
        entry: (ApiKey, User),
        read_ms: i64,
    ) {
        self.0.insert(since, hash, entry, read_ms);
    }

    /// Says whether the use of a key has to be saved now: once a minute, and to one caller only.
    pub(crate) fn is_touch_due(&self, hash: &str, key: &ApiKey, now_ms: i64) -> bool {
        let is_due = |last: Option<i64>| last.is_none_or(|last| last + TOUCH_EVERY_MS <= now_ms);
        let cached = self.0.update(hash, |(key, _)| {
            let is_due = is_due(key.last_used_ms);
            if is_due {
                key.last_used_ms = Some(now_ms);
            }
            is_due
        });
        cached.unwrap_or_else(|| is_due(key.last_used_ms))
    }

    /// Removes all keys, because keys or users changed. Each key costs one look-up again.
    pub(crate) fn clear(&self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandyard_core::{Role, Scope};

    fn key_and_user() -> (ApiKey, User) {
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
    fn use_is_saved_once_a_minute() {
        let cache = KeyCache::default();
        let since = cache.find("h", 5000).unwrap_err();
        cache.insert(since, "h", key_and_user(), 5000);
        let (key, _) = key_and_user();
        assert!(cache.is_touch_due("h", &key, 5000));
        assert!(!cache.is_touch_due("h", &key, 5000));
        assert!(!cache.is_touch_due("h", &key, 64_999));
        assert!(cache.is_touch_due("h", &key, 65_000));
    }
}
