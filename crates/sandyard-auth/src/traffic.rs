//! The token for every port of one sandbox, valid as long as the sandbox exists.
//!
//! It is derived from the installation's secret and the sandbox's id, so it is not stored. Ids are never reused.

use sandyard_core::SandboxId;

use crate::auth::Auth;

/// Longest token that is checked, in bytes. Issued tokens have 43.
const MAX_LEN: usize = 100;

impl Auth {
    /// The token for every port of a sandbox. It can be used in a header.
    pub fn traffic_token(&self, sandbox_id: &SandboxId) -> String {
        self.inner.keys.traffic.sign(sandbox_id.as_str().as_bytes())
    }

    /// Says whether a token belongs to a sandbox, in constant time.
    pub fn is_traffic_token(&self, sandbox_id: &SandboxId, token: &str) -> bool {
        let message = sandbox_id.as_str().as_bytes();
        token.len() <= MAX_LEN && self.inner.keys.traffic.is_signed(message, token)
    }
}

#[cfg(test)]
mod tests {
    use sandyard_core::Clock;
    use sandyard_store::Store;

    use super::*;
    use crate::config::AuthConfig;

    async fn auth(store: Store) -> Auth {
        Auth::open(store, Clock::manual(1_000_000), AuthConfig::default())
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn a_token_is_for_its_sandbox_and_outlives_the_server() {
        let store = Store::open("sqlite::memory:").await.unwrap();
        let (first_id, second_id) = (id("abcdefghijklmnopqrst"), id("abcdefghijklmnopqrsu"));
        let first = auth(store.clone()).await;
        let token = first.traffic_token(&first_id);
        assert!(first.is_traffic_token(&first_id, &token));
        assert!(!first.is_traffic_token(&second_id, &token));
        assert!(auth(store).await.is_traffic_token(&first_id, &token));
        let other_store = auth(Store::open("sqlite::memory:").await.unwrap()).await;
        assert!(!other_store.is_traffic_token(&first_id, &token));
    }

    #[tokio::test]
    async fn no_other_text_is_the_token() {
        let auth = auth(Store::open("sqlite::memory:").await.unwrap()).await;
        let first_id = id("abcdefghijklmnopqrst");
        let token = auth.traffic_token(&first_id);
        let link = auth.sign_preview(&first_id, 80, i64::MAX);
        let long = "A".repeat(100_000);
        for wrong in ["", "=", &token[..42], &format!("{token}A"), &link, &long] {
            assert!(!auth.is_traffic_token(&first_id, wrong), "{wrong}");
        }
    }

    fn id(text: &str) -> SandboxId {
        text.parse().unwrap()
    }
}
