//! Logging in with a name and a password.

use sandyard_store::model::User;
use tracing::warn;

use crate::auth::Auth;
use crate::config::as_ms;
use crate::error::{AuthError, Why};
use crate::session::Tokens;
use crate::user_name;
use crate::users::UserView;

impl Auth {
    /// Logs in. A name that nobody has takes as long, and locks, like a wrong password.
    ///
    /// # Errors
    ///
    /// [`AuthError::WrongPassword`]; [`AuthError::Locked`] after too many of them, also for the right one;
    /// [`AuthError::TooManyLogins`] when too many wait.
    pub async fn login(&self, name: &str, password: &str) -> Result<Tokens, AuthError> {
        let user = self.user_with_password(name, password).await?;
        self.open_session(user).await
    }

    /// Checks a password without a login, before something grave. Wrong ones count and lock as they do at the login.
    pub async fn check_password(&self, name: &str, password: &str) -> Result<UserView, AuthError> {
        let user = self.user_with_password(name, password).await?;
        Ok(UserView::from(&user))
    }

    async fn user_with_password(&self, name: &str, password: &str) -> Result<User, AuthError> {
        // What cannot be a name is nobody's: it is treated alike, without being looked up or remembered.
        let name = user_name::parse(name).unwrap_or_default();
        let _turn = self.inner.lockout.turn(&name).await?;
        let user = self.store().user(&name).await?;
        self.check_lock(&name, user.as_ref())?;
        let hash = user.as_ref().and_then(|user| user.password_hash.as_deref());
        let is_right = self.inner.passwords.is_right(hash, password).await?;
        match user {
            Some(user) if is_right => {
                if user.is_disabled {
                    return Err(Why::Disabled.into());
                }
                if user.failures > 0 || user.locked_until_ms.is_some() {
                    self.store().clear_login_failures(&name).await?;
                }
                Ok(user)
            }
            _ => Err(self.note_failure(&name).await?),
        }
    }

    fn check_lock(&self, name: &str, user: Option<&User>) -> Result<(), AuthError> {
        let until_ms = match user {
            Some(user) => user.locked_until_ms,
            None => self.inner.lockout.stranger_locked_until_ms(name),
        };
        let left_ms = until_ms.unwrap_or(0).saturating_sub(self.now_ms());
        match u64::try_from(left_ms) {
            Ok(left_ms) if left_ms > 0 => Err(AuthError::Locked {
                retry_after_s: left_ms.div_ceil(1000),
            }),
            _ => Ok(()),
        }
    }

    async fn note_failure(&self, name: &str) -> Result<AuthError, AuthError> {
        let config = &self.inner.config;
        let now_ms = self.now_ms();
        let until_ms = now_ms.saturating_add(as_ms(config.lock_for));
        // The store is asked for strangers too: an answer that skips it would come sooner.
        let noted = self
            .store()
            .note_login_failure(name, i64::from(config.max_failures), until_ms)
            .await?;
        match noted {
            Some(user) if user.locked_until_ms.is_some_and(|until| until > now_ms) => {
                warn!(user.name = %name, "Locked `{name}` after too many failed logins");
            }
            Some(_) => {}
            None if name.is_empty() => {}
            None => self
                .inner
                .lockout
                .note_stranger(name, config.max_failures, now_ms, until_ms),
        }
        Ok(AuthError::WrongPassword)
    }
}
