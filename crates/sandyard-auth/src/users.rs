//! Accounts.

use sandyard_core::Role;
use sandyard_store::model::{NewUser, User, UserPatch};
use serde::Serialize;

use crate::auth::Auth;
use crate::error::{AuthError, Result};
use crate::user_name;

/// A user, without secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UserView {
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Whether it is disabled: its credentials are rejected.
    pub is_disabled: bool,
    /// Whether it has a password and can log in.
    pub has_password: bool,
    /// Most sandboxes that it may have; none for the settings' number.
    pub max_sandboxes: Option<i64>,
    /// Until when logins are refused, in milliseconds since 1970.
    pub locked_until_ms: Option<i64>,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: i64,
}

impl From<&User> for UserView {
    fn from(user: &User) -> Self {
        Self {
            name: user.name.clone(),
            role: user.role,
            is_disabled: user.is_disabled,
            has_password: user.password_hash.is_some(),
            max_sandboxes: user.max_sandboxes,
            locked_until_ms: user.locked_until_ms,
            created_ms: user.created_ms,
        }
    }
}

/// Changes of a user. A field that is none stays unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserChange {
    /// New role.
    pub role: Option<Role>,
    /// Whether it is disabled. Disabling ends its sessions, and its keys are rejected meanwhile.
    pub is_disabled: Option<bool>,
    /// New quota; `Some(None)` for the settings' number.
    pub max_sandboxes: Option<Option<i64>>,
}

impl Auth {
    /// Creates a user. Without a password it cannot log in, but can have keys.
    pub async fn create_user(
        &self,
        name: &str,
        password: Option<&str>,
        role: Role,
        max_sandboxes: Option<i64>,
    ) -> Result<UserView> {
        let name = user_name::parse_new(name)?;
        check_quota(max_sandboxes)?;
        let password_hash = match password {
            Some(password) => Some(self.inner.passwords.hash(password).await?),
            None => None,
        };
        let new = NewUser {
            name: name.clone(),
            password_hash,
            role,
            max_sandboxes,
            created_ms: self.now_ms(),
        };
        if !self.store().insert_user(&new).await? {
            return Err(AuthError::UserExists(name));
        }
        self.inner.lockout.forget_unknown(&name);
        self.inner.disabled_users.clear();
        self.user(&name).await
    }

    /// Finds a user.
    pub async fn user(&self, name: &str) -> Result<UserView> {
        Ok(UserView::from(&self.existing_user(name).await?))
    }

    /// Lists users by name.
    pub async fn list_users(&self) -> Result<Vec<UserView>> {
        let users = self.store().users().await?;
        Ok(users.iter().map(UserView::from).collect())
    }

    /// Changes a user. Fails if that would leave no enabled admin.
    pub async fn update_user(&self, name: &str, change: &UserChange) -> Result<UserView> {
        check_quota(change.max_sandboxes.flatten())?;
        let user = self.existing_user(name).await?;
        let patch = UserPatch {
            password_hash: None,
            role: change.role,
            is_disabled: change.is_disabled,
            max_sandboxes: change.max_sandboxes,
        };
        let is_disabling = change.is_disabled == Some(true);
        let update = async || Ok(self.store().update_user(&user.name, &patch).await?);
        let is_found = if is_disabling || change.role == Some(Role::User) {
            self.unless_last_admin(&user.name, update).await?
        } else {
            update().await?
        };
        self.inner.key_cache.clear();
        self.inner.disabled_users.clear();
        if !is_found {
            return Err(AuthError::UserNotFound(user.name));
        }
        if is_disabling {
            self.logout_everywhere(&user.name).await?;
        }
        self.user(&user.name).await
    }

    /// Deletes a user with its keys and sessions, unless it is the last enabled admin. Its sandboxes stay.
    pub async fn delete_user(&self, name: &str) -> Result<()> {
        let user = self.existing_user(name).await?;
        let delete = async || Ok(self.store().delete_user(&user.name).await?);
        let is_found = self.unless_last_admin(&user.name, delete).await?;
        self.inner.key_cache.clear();
        self.inner.disabled_users.clear();
        if is_found {
            Ok(())
        } else {
            Err(AuthError::UserNotFound(user.name))
        }
    }

    /// Sets a user's password, and ends its sessions and its lock-out.
    pub async fn set_password(&self, name: &str, password: &str) -> Result<()> {
        let user = self.existing_user(name).await?;
        let patch = UserPatch {
            password_hash: Some(self.inner.passwords.hash(password).await?),
            ..UserPatch::default()
        };
        if !self.store().update_user(&user.name, &patch).await? {
            return Err(AuthError::UserNotFound(user.name));
        }
        self.logout_everywhere(&user.name).await?;
        self.store().clear_login_failures(&user.name).await?;
        Ok(())
    }

    pub(crate) async fn existing_user(&self, name: &str) -> Result<User> {
        let not_found = || AuthError::UserNotFound(name.chars().take(63).collect());
        let name = user_name::parse(name).ok_or_else(not_found)?;
        self.store().user(&name).await?.ok_or_else(not_found)
    }
}

fn check_quota(max_sandboxes: Option<i64>) -> Result<()> {
    if max_sandboxes.is_some_and(|max| max < 0) {
        return Err(AuthError::Invalid {
            field: "max_sandboxes",
            detail: "must not be negative",
        });
    }
    Ok(())
}
