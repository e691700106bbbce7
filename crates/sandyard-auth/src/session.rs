//! Sessions: what a login creates, how it is refreshed, how it ends.
//!
//! ```text
//!  login ──► session ──refresh──► same session, new tokens
//!               │  └─ an old refresh token ──► revoked: the token was copied
//!               ├─ logout, new password, disabled user ──► revoked
//!               └─ refresh_ttl without a refresh ──► expired
//! ```

use sandyard_core::Caller;
use sandyard_store::model::{Session, User};
use tracing::warn;

use crate::auth::Auth;
use crate::config::as_ms;
use crate::error::{AuthError, Rejection, Result};
use crate::jwt::{self, Claims};
use crate::random;
use crate::refresh_token;
use crate::secret::sha256_hex;
use crate::user_name;
use crate::users::UserView;

/// The tokens of a login.
#[derive(Clone, PartialEq, Eq)]
pub struct Tokens {
    /// The token for `Authorization: Bearer`.
    pub access_token: String,
    /// The token for the next refresh; valid once.
    pub refresh_token: String,
    /// When the access token expires, in milliseconds since 1970.
    pub expires_ms: i64,
    /// The user who logged in.
    pub user: UserView,
}

sandyard_core::debug_fields!(Tokens: expires_ms, user);

impl Auth {
    /// Exchanges a refresh token for new tokens of the same session. It is valid once; using an old one ends the session, because two
    /// parties have it.
    pub async fn refresh(&self, refresh_token: &str) -> Result<Tokens> {
        let keys = &self.inner.keys;
        let session_id = refresh_token::session_of(&keys.refresh, refresh_token)?;
        let (session, user) = self.live_session(session_id).await?;
        let next = refresh_token::make(&keys.refresh, session_id)?;
        let is_current = self
            .store()
            .rotate_session(
                session_id,
                &sha256_hex(refresh_token),
                &sha256_hex(&next),
                self.refresh_end_ms(),
            )
            .await?;
        if !is_current {
            self.store()
                .revoke_session(session_id, self.now_ms())
                .await?;
            warn!(session.id = %session.id, user.name = %user.name, "Ended a session: its old refresh token was used again");
            return Err(Rejection::Revoked.into());
        }
        self.tokens(&user, session_id, next)
    }

    /// Ends the caller's session.
    pub async fn logout(&self, caller: &Caller) -> Result<()> {
        let session_id = caller
            .via
            .strip_prefix("session:")
            .ok_or(AuthError::NoSession)?;
        self.store()
            .revoke_session(session_id, self.now_ms())
            .await?;
        Ok(())
    }

    /// Ends all sessions of a user. Returns how many. Keys stay valid.
    pub async fn logout_everywhere(&self, name: &str) -> Result<u64> {
        let Some(name) = user_name::parse(name) else {
            return Ok(0);
        };
        Ok(self
            .store()
            .revoke_sessions_of(&name, self.now_ms())
            .await?)
    }

    /// Opens a session for a user whose password was correct.
    pub(crate) async fn open_session(&self, user: User) -> Result<Tokens> {
        let id = random::hex_text::<16>()?;
        let refresh_token = refresh_token::make(&self.inner.keys.refresh, &id)?;
        let session = Session {
            id: id.clone(),
            owner: user.name.clone(),
            refresh_hash: sha256_hex(&refresh_token),
            created_ms: self.now_ms(),
            expires_ms: self.refresh_end_ms(),
            revoked_ms: None,
        };
        self.store().insert_session(&session).await?;
        // A new password ends all sessions. It may have been set between the check of the old one and this session.
        let now = self.store().user(&user.name).await?;
        if now.is_none_or(|now| now.is_disabled || now.password_hash != user.password_hash) {
            self.store().revoke_session(&id, self.now_ms()).await?;
            return Err(Rejection::Revoked.into());
        }
        self.tokens(&user, &id, refresh_token)
    }

    /// Finds a valid session and its user.
    pub(crate) async fn live_session(&self, id: &str) -> Result<(Session, User)> {
        let (session, user) = self.store().session(id).await?.ok_or(Rejection::Unknown)?;
        if session.revoked_ms.is_some() {
            return Err(Rejection::Revoked.into());
        }
        if session.expires_ms <= self.now_ms() {
            return Err(Rejection::Expired.into());
        }
        if user.is_disabled {
            return Err(Rejection::Disabled.into());
        }
        Ok((session, user))
    }

    fn tokens(&self, user: &User, session_id: &str, refresh_token: String) -> Result<Tokens> {
        let now_ms = self.now_ms();
        let exp = now_ms.saturating_add(as_ms(self.inner.config.token_ttl)) / 1000;
        let claims = Claims {
            sub: user.name.clone(),
            role: user.role,
            sid: session_id.to_owned(),
            iat: now_ms / 1000,
            exp,
            jti: random::hex_text::<8>()?,
        };
        Ok(Tokens {
            access_token: jwt::sign(&self.inner.keys.token, &claims)?,
            refresh_token,
            expires_ms: exp.saturating_mul(1000),
            user: UserView::from(user),
        })
    }

    fn refresh_end_ms(&self) -> i64 {
        self.now_ms()
            .saturating_add(as_ms(self.inner.config.refresh_ttl))
    }
}
