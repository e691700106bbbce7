//! How one server of a store knows another: a signed word that is good for a minute.

use crate::auth::Auth;
use crate::error::{AuthError, Why};
use crate::preview;

const LIFE_MS: i64 = 60_000;
/// How far the clocks of two hosts may differ: the other's may be ahead, but a token does not last for ever by that.
const MAX_AHEAD_MS: i64 = 60_000;
const SUBJECT: &str = "node";

impl Auth {
    /// Signs a call to another server.
    pub fn sign_node(&self) -> String {
        let expires_ms = self.now_ms().saturating_add(LIFE_MS);
        preview::sign(&self.inner.keys.node, SUBJECT, expires_ms)
    }

    /// Checks that a call comes from a server of the same store.
    pub fn check_node(&self, token: &str) -> Result<(), AuthError> {
        let expires_ms = preview::read(&self.inner.keys.node, SUBJECT, token)?;
        let left_ms = expires_ms.saturating_sub(self.now_ms());
        if (1..=LIFE_MS + MAX_AHEAD_MS).contains(&left_ms) {
            Ok(())
        } else {
            Err(Why::Expired.into())
        }
    }
}
