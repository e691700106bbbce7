//! Login with name and password.

use sandyard_store::model::User;
use tracing::warn;

use crate::auth::Auth;
use crate::config::as_ms;
use crate::error::{AuthError, Rejection, Result};
use crate::session::Tokens;
use crate::user_name;
use crate::users::UserView;

impl Auth {
    /// Logs in. An unknown name takes as long as a wrong password, and is locked like one.
    ///
    /// # Errors
    ///
    /// [`AuthError::WrongPassword`]; [`AuthError::Locked`] after too many wrong passwords, even for the right one;
    /// [`AuthError::TooManyLogins`] if too many logins wait.
    pub async fn login(&self, name: &str, password: &str) -> Result<Tokens> {
        let user = self.user_with_password(name, password).await?;
        self.open_session(user).await
    }

    /// Checks a password without a login, before a critical operation. Wrong passwords count as at a login.
    pub async fn check_password(&self, name: &str, password: &str) -> Result<UserView> {
        let user = self.user_with_password(name, password).await?;
        Ok(UserView::from(&user))
    }

    async fn user_with_password(&self, name: &str, password: &str) -> Result<User> {
        // An invalid name is treated like an unknown one, but is neither looked up nor tracked.
        let name = user_name::parse(name).unwrap_or_default();
        let _guard = self.inner.lockout.lock(&name).await?;
        let user = self.store().user(&name).await?;
        self.check_lock(&name, user.as_ref())?;
        let hash = user.as_ref().and_then(|user| user.password_hash.as_deref());
        let is_correct = self.inner.passwords.is_correct(hash, password).await?;
        match user {
            Some(user) if is_correct => {
                if user.is_disabled {
                    return Err(Rejection::Disabled.into());
                }
                if user.failures > 0 || user.locked_until_ms.is_some() {
                    self.store().clear_login_failures(&name).await?;
                }
                Ok(user)
            }
            _ => Err(self.count_failure(&name).await?),
        }
    }

    fn check_lock(&self, name: &str, user: Option<&User>) -> Result<()> {
        let until_ms = match user {
            Some(user) => user.locked_until_ms,
            None => self.inner.lockout.unknown_locked_until_ms(name),
        };
        let remaining_ms = until_ms.unwrap_or(0).saturating_sub(self.now_ms());
        match u64::try_from(remaining_ms) {
            Ok(remaining_ms) if remaining_ms > 0 => Err(AuthError::Locked {
                retry_after_s: remaining_ms.div_ceil(1000),
            }),
            _ => Ok(()),
        }
    }

    async fn count_failure(&self, name: &str) -> Result<AuthError> {
        let config = &self.inner.config;
        let now_ms = self.now_ms();
        let until_ms = now_ms.saturating_add(as_ms(config.lock_for));
        // Also for unknown names: an answer without this query would be faster.
        let counted = self
            .store()
            .note_login_failure(name, i64::from(config.max_failures), until_ms)
            .await?;
        match counted {
            Some(user) if user.locked_until_ms.is_some_and(|until| until > now_ms) => {
                warn!(user.name = %name, "Locked `{name}` after too many failed logins");
            }
            Some(_) => {}
            None if name.is_empty() => {}
            None => self.inner.lockout.count_unknown_failure(
                name,
                config.max_failures,
                now_ms,
                until_ms,
            ),
        }
        Ok(AuthError::WrongPassword)
    }
}
