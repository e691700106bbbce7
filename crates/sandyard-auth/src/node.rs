//! Authenticates calls between servers of one store, with a signed token that is valid for a minute.

use crate::auth::Auth;
use crate::error::{Rejection, Result};
use crate::preview;

const LIFE_MS: i64 = 60_000;
/// How far the other host's clock may be ahead, so that its token is not valid for longer.
const MAX_AHEAD_MS: i64 = 60_000;
const SUBJECT: &str = "node";

impl Auth {
    /// Signs a call to another server.
    pub fn sign_node(&self) -> String {
        let expires_ms = self.now_ms().saturating_add(LIFE_MS);
        preview::sign(&self.inner.keys.node, SUBJECT, expires_ms)
    }

    /// Checks that a call comes from a server of the same store.
    pub fn check_node(&self, token: &str) -> Result<()> {
        let expires_ms = preview::read(&self.inner.keys.node, SUBJECT, token)?;
        let remaining_ms = expires_ms.saturating_sub(self.now_ms());
        if (1..=LIFE_MS + MAX_AHEAD_MS).contains(&remaining_ms) {
            Ok(())
        } else {
            Err(Rejection::Expired.into())
        }
    }
}
