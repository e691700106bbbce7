//! Users, keys and sessions.

use sandyard_core::{Role, Scope};
use std::fmt;

/// A user. The name is the identity: sandboxes belong to names.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    /// Its name, lower-case.
    pub name: String,
    /// Hash of its password (PHC text); none: it cannot log in.
    pub password_hash: Option<String>,
    /// What it is.
    pub role: Role,
    /// It may do nothing.
    pub is_disabled: bool,
    /// How many sandboxes it may have; none: the settings' number.
    pub max_sandboxes: Option<i64>,
    /// Failed logins in a row.
    pub failures: i64,
    /// No login before this time.
    pub locked_until_ms: Option<i64>,
    /// When it was made.
    pub created_ms: i64,
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User")
            .field("name", &self.name)
            .field("role", &self.role)
            .field("is_disabled", &self.is_disabled)
            .finish_non_exhaustive()
    }
}

/// A user to be remembered.
#[derive(Clone, PartialEq, Eq)]
pub struct NewUser {
    /// Its name.
    pub name: String,
    /// Hash of its password.
    pub password_hash: Option<String>,
    /// What it is.
    pub role: Role,
    /// How many sandboxes it may have.
    pub max_sandboxes: Option<i64>,
    /// When.
    pub created_ms: i64,
}

impl fmt::Debug for NewUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewUser")
            .field("name", &self.name)
            .field("role", &self.role)
            .field("max_sandboxes", &self.max_sandboxes)
            .finish_non_exhaustive()
    }
}

/// What changes of a user; an empty field stays as it is.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct UserPatch {
    /// New password.
    pub password_hash: Option<String>,
    /// New role.
    pub role: Option<Role>,
    /// Whether it may do anything.
    pub is_disabled: Option<bool>,
    /// New quota; `Some(None)`: the settings' number.
    pub max_sandboxes: Option<Option<i64>>,
}

impl fmt::Debug for UserPatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserPatch")
            .field("has_password", &self.password_hash.is_some())
            .field("role", &self.role)
            .field("is_disabled", &self.is_disabled)
            .field("max_sandboxes", &self.max_sandboxes)
            .finish_non_exhaustive()
    }
}

/// A key, without the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Its public name.
    pub id: String,
    /// Whose.
    pub owner: String,
    /// What its owner calls it.
    pub name: String,
    /// How it begins and ends, to recognise it by.
    pub mask: String,
    /// What it may be used for.
    pub scopes: Vec<Scope>,
    /// When it was made.
    pub created_ms: i64,
    /// When it ends.
    pub expires_ms: Option<i64>,
    /// When it was last used, to the minute.
    pub last_used_ms: Option<i64>,
    /// When it was revoked.
    pub revoked_ms: Option<i64>,
}

/// A key to be remembered.
#[derive(Clone, PartialEq, Eq)]
pub struct NewApiKey {
    /// All that may be shown.
    pub key: ApiKey,
    /// SHA-256 of the key, in hex. A key is 160 random bits, so a slow hash would add nothing.
    pub hash: String,
}

impl fmt::Debug for NewApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewApiKey")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// A login.
#[derive(Clone, PartialEq, Eq)]
pub struct Session {
    /// Its name; in the token as `sid`.
    pub id: String,
    /// Whose.
    pub owner: String,
    /// SHA-256 of the refresh token, in hex.
    pub refresh_hash: String,
    /// When it began.
    pub created_ms: i64,
    /// When it ends for good.
    pub expires_ms: i64,
    /// When it was ended before.
    pub revoked_ms: Option<i64>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.id)
            .field("owner", &self.owner)
            .field("expires_ms", &self.expires_ms)
            .field("revoked_ms", &self.revoked_ms)
            .finish_non_exhaustive()
    }
}
