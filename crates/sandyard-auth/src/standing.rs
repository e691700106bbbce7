//! Whether a user may still do anything, asked for every request that shows something of a sandbox of theirs.
//!
//! Those who show a sandbox's token name no user, so who owns the sandbox is asked instead; and often, so what the store says
//! is remembered for a moment.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::auth::Auth;
use crate::error::AuthError;

/// How long what another server did to a user may go unseen here. What we do is seen at once.
const LIFE_MS: i64 = 2000;

/// Most owners remembered.
const MAX_NAMES: usize = 4096;

/// Owners lately asked about. Only those of sandboxes are asked about: nobody can fill it by guessing.
#[derive(Default)]
pub(crate) struct Standings(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    by_name: HashMap<String, Standing>,
    /// Counts what was forgotten, so that a look-up that began before is not kept after.
    generation: u64,
}

#[derive(Clone, Copy)]
struct Standing {
    is_disabled: bool,
    read_ms: i64,
}

impl Standings {
    /// Forgets all: a user changed.
    pub(crate) fn forget(&self) {
        let mut kept = self.kept();
        kept.generation += 1;
        kept.by_name.clear();
    }

    /// What was said of a user a moment ago, or before which forgetting a look-up now begins.
    fn find(&self, name: &str, now_ms: i64) -> Result<bool, u64> {
        let kept = self.kept();
        kept.by_name
            .get(name)
            // A host's clock may be set back; what is from the future is not fresh.
            .filter(|it| (it.read_ms..it.read_ms.saturating_add(LIFE_MS)).contains(&now_ms))
            .map(|it| it.is_disabled)
            .ok_or(kept.generation)
    }

    fn keep(&self, since: u64, name: &str, standing: Standing) {
        let mut kept = self.kept();
        if kept.generation != since {
            return;
        }
        if kept.by_name.len() >= MAX_NAMES {
            kept.by_name.clear();
        }
        kept.by_name.insert(name.to_owned(), standing);
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Auth {
    /// Says whether the owner of a sandbox is a user that is disabled. A name that is no user's is not: it was never more than
    /// a name.
    pub async fn is_disabled(&self, owner: &str) -> Result<bool, AuthError> {
        let now_ms = self.now_ms();
        let since = match self.inner.standings.find(owner, now_ms) {
            Ok(is_disabled) => return Ok(is_disabled),
            Err(since) => since,
        };
        let user = self.store().user(owner).await?;
        let is_disabled = user.is_some_and(|user| user.is_disabled);
        let standing = Standing {
            is_disabled,
            read_ms: now_ms,
        };
        self.inner.standings.keep(since, owner, standing);
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

    async fn opened() -> (Auth, Store, Clock) {
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
    async fn what_we_change_is_seen_at_once() {
        let (auth, ..) = opened().await;
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
    async fn what_others_change_is_seen_in_a_moment_and_the_store_is_seldom_asked() {
        let (auth, store, clock) = opened().await;
        assert!(!auth.is_disabled("alice").await.unwrap());
        let patch = UserPatch {
            is_disabled: Some(true),
            ..UserPatch::default()
        };
        store.update_user("alice", &patch).await.unwrap();
        assert!(!auth.is_disabled("alice").await.unwrap());
        clock.advance_ms(LIFE_MS);
        assert!(auth.is_disabled("alice").await.unwrap());
    }

    #[test]
    fn a_look_up_begun_before_a_change_is_not_kept_and_not_too_many_are() {
        let standings = Standings::default();
        let standing = Standing {
            is_disabled: false,
            read_ms: 5000,
        };
        let before = standings.find("alice", 5000).unwrap_err();
        standings.forget();
        standings.keep(before, "alice", standing);
        let since = standings.find("alice", 5000).unwrap_err();
        for number in 0..3 * MAX_NAMES {
            standings.keep(since, &number.to_string(), standing);
        }
        assert!(standings.kept().by_name.len() <= MAX_NAMES);
    }
}
