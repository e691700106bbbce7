//! Finds the caller of a credential.

use sandyard_core::{Caller, Role, Scope};
use sandyard_store::model::{ApiKey, User};
use tracing::warn;

use crate::auth::Auth;
use crate::error::{Rejection, Result};
use crate::jwt;
use crate::key_text;
use crate::secret::sha256_hex;

impl Auth {
    /// Finds the caller of a credential: an access token or a key, from the header `Authorization: Bearer` or `X-API-Key`.
    ///
    /// The store is asked each time (for a key, once a second), so that logging out, revoking and disabling take effect at once.
    ///
    /// # Errors
    ///
    /// [`AuthError::Unauthenticated`](crate::AuthError::Unauthenticated) with the reason.
    pub async fn authenticate(&self, credential: &str) -> Result<Caller> {
        let credential = credential.trim();
        if credential.is_empty() {
            Err(Rejection::Missing.into())
        } else if key_text::is_like(credential) {
            self.caller_of_key(credential).await
        } else if jwt::is_like(credential) {
            self.caller_of_token(credential).await
        } else {
            Err(Rejection::Malformed.into())
        }
    }

    /// Says whether this server issued a credential, valid or not. Such a text must not be shown to others.
    pub fn is_own(&self, text: &str) -> bool {
        key_text::is_like(text) || jwt::is_signed(&self.inner.keys.token, text)
    }

    async fn caller_of_token(&self, token: &str) -> Result<Caller> {
        let claims = jwt::read(&self.inner.keys.token, token, self.now_ms())?;
        let (session, user) = self.live_session(&claims.sid).await?;
        if session.owner != claims.sub {
            return Err(Rejection::Forged.into());
        }
        // The user's current role counts, not the one in the token.
        Ok(Caller {
            scopes: scopes_of(user.role),
            role: user.role,
            name: user.name,
            via: format!("session:{}", session.id),
        })
    }

    async fn caller_of_key(&self, secret: &str) -> Result<Caller> {
        let hash = sha256_hex(secret);
        let (key, user) = self.find_key(&hash).await?.ok_or(Rejection::Unknown)?;
        let now_ms = self.now_ms();
        if key.revoked_ms.is_some() {
            return Err(Rejection::Revoked.into());
        }
        if key.expires_ms.is_some_and(|end| end <= now_ms) {
            return Err(Rejection::Expired.into());
        }
        if user.is_disabled {
            return Err(Rejection::Disabled.into());
        }
        if self.inner.key_cache.is_touch_due(&hash, &key, now_ms)
            && let Err(error) = self.store().touch_key(&key.id, now_ms).await
        {
            // Not a reason to reject a valid key.
            warn!(key.id = %key.id, error = %error, "Failed to save the use of key `{}`", key.id);
        }
        Ok(Caller {
            scopes: key.scopes,
            role: user.role,
            name: user.name,
            via: format!("key:{}", key.id),
        })
    }

    async fn find_key(&self, hash: &str) -> Result<Option<(ApiKey, User)>> {
        let cache = &self.inner.key_cache;
        let now_ms = self.now_ms();
        let since = match cache.find(hash, now_ms) {
            Ok(found) => return Ok(Some(found)),
            Err(since) => since,
        };
        let found = self.store().key_by_hash(hash).await?;
        if let Some(found) = &found {
            cache.insert(since, hash, found.clone(), now_ms);
        }
        Ok(found)
    }
}

/// The scopes of a login: everything that its user may do.
fn scopes_of(role: Role) -> Vec<Scope> {
    Scope::ALL
        .into_iter()
        .filter(|scope| *scope != Scope::Admin || role == Role::Admin)
        .collect()
}
