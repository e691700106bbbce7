//! The authentication over a real store, with a clock that the tests move.

mod first_admin;
mod keys;
mod links;
mod login;
mod tokens;
mod users;

use std::time::Duration;

use sandyard_auth::{Auth, AuthConfig, AuthError, Rejection};
use sandyard_core::{Caller, Clock, Role};
use sandyard_store::Store;

const START_MS: i64 = 1_700_000_000_000;
const PASSWORD: &str = "correct horse battery";

/// One server, with the users `root` (admin) and `alice`.
struct TestAuth {
    auth: Auth,
    store: Store,
    clock: Clock,
}

impl std::ops::Deref for TestAuth {
    type Target = Auth;

    fn deref(&self) -> &Auth {
        &self.auth
    }
}

impl TestAuth {
    async fn new() -> Self {
        let test = Self::empty().await;
        for (name, role) in [("root", Role::Admin), ("alice", Role::User)] {
            test.create_user(name, Some(PASSWORD), role, None)
                .await
                .expect("make a user");
        }
        test
    }

    async fn empty() -> Self {
        let store = Store::open("sqlite::memory:").await.expect("open a store");
        let clock = Clock::manual(START_MS);
        let auth = Auth::open(store.clone(), clock.clone(), config())
            .await
            .expect("open the authentication");
        Self { auth, store, clock }
    }

    /// Another server of the same store.
    async fn replica(&self) -> Auth {
        self.replica_with(config()).await
    }

    async fn replica_with(&self, config: AuthConfig) -> Auth {
        Auth::open(self.store.clone(), self.clock.clone(), config)
            .await
            .expect("open another server")
    }

    fn advance(&self, by: Duration) {
        self.clock
            .advance_ms(i64::try_from(by.as_millis()).expect("a short time"));
    }

    async fn rejection(&self, credential: &str) -> Rejection {
        rejection(self.authenticate(credential).await)
    }
}

/// The shipped settings, but hashing that takes no time.
fn config() -> AuthConfig {
    AuthConfig {
        password_memory_kib: 64,
        ..AuthConfig::default()
    }
}

fn rejection<T: std::fmt::Debug>(result: Result<T, AuthError>) -> Rejection {
    match result {
        Err(AuthError::Unauthenticated { reason }) => reason,
        other => panic!("not refused as it should be: {other:?}"),
    }
}

fn session_id(caller: &Caller) -> &str {
    caller
        .via
        .strip_prefix("session:")
        .expect("it came by a login")
}
