//! Says whether the owner of a sandbox is disabled.
//!
//! A request with a sandbox's token names no user, so the owner of the sandbox is checked instead. That happens often, so the answer of
//! the store is cached for a moment.

use crate::auth::Auth;
use crate::error::Result;
use crate::short_cache::ShortCache;

/// How long a change by another server may go unnoticed. This server's own is noticed at once.
const TTL_MS: i64 = 2000;
/// Most owners in the cache.
const MAX_NAMES: usize = 4096;

/// Whether each owner is disabled. Only owners of sandboxes are looked up, so that guessing cannot fill it.
pub(crate) struct DisabledUsers(ShortCache<bool>);

impl Default for DisabledUsers {
    fn default() -> Self {
        Self(ShortCache::new(TTL_MS, MAX_NAMES))
    }
}

impl DisabledUsers {
    /// Clears the cache, because a user changed.
    pub(crate) fn clear(&self) {
        self.0.clear();
    }
}

impl Auth {
    /// Says whether the owner of a sandbox is a disabled user. An owner without an account is not.
    pub async fn is_disabled(&self, owner: &str) -> Result<bool> {
        let now_ms = self.now_ms();
        let cache = &self.inner.disabled_users.0;
        let since = match cache.find(owner, now_ms) {
            Ok(is_disabled) => return Ok(is_disabled),
            Err(since) => since,
        };
        let user = self.store().user(owner).await?;
        let is_disabled = user.is_some_and(|user| user.is_disabled);
        cache.insert(since, owner, is_disabled, now_ms);
        Ok(is_disabled)
    }
}

#[cfg(test)]
mod tests {
    use sandyard_core::{Clock, Role};
    use sandyard_store::Store;
    use sandyard_store::model::UserPatch;

    use super::*;
    use crate::config::AuthConfig;
    use crate::users::UserChange;

    async fn open_auth() -> (Auth, Store, Clock) {
        let store = Store::open("sqlite::memory:").await.unwrap();
        let clock = Clock::manual(1_000_000);
        let auth = Auth::open(store.clone(), clock.clone(), AuthConfig::default());
        let auth = auth.await.unwrap();
        auth.create_user("alice", None, Role::User, None)
            .await
            .unwrap();
        (auth, store, clock)
    }

    #[tokio::test]
    async fn a_change_on_this_server_is_seen_at_once() {
        let (auth, ..) = open_auth().await;
        assert!(!auth.is_disabled("nobody at all").await.unwrap());
        for is_disabled in [false, true, false] {
            let change = UserChange {
                is_disabled: Some(is_disabled),
                ..UserChange::default()
            };
            auth.update_user("alice", &change).await.unwrap();
            for _ in 0..2 {
                assert_eq!(auth.is_disabled("alice").await.unwrap(), is_disabled);
            }
        }
    }

    #[tokio::test]
    async fn a_change_by_another_server_is_seen_after_the_cache_expires() {
        let (auth, store, clock) = open_auth().await;
        assert!(!auth.is_disabled("alice").await.unwrap());
        let patch = UserPatch {
            is_disabled: Some(true),
            ..UserPatch::default()
        };
        store.update_user("alice", &patch).await.unwrap();
        assert!(!auth.is_disabled("alice").await.unwrap());
        clock.advance_ms(TTL_MS);
        assert!(auth.is_disabled("alice").await.unwrap());
    }
}
