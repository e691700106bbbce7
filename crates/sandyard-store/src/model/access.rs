//! Users, keys and sessions.

use sandyard_core::{Role, Scope};
use std::fmt;

/// A user. The name is the identity: sandboxes belong to names.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    /// Its name, lower-case.
    pub name: String,
    /// The hash of its password (PHC string); none if it cannot log in.
    pub password_hash: Option<String>,
    /// Its role.
    pub role: Role,
    /// Whether its credentials are rejected.
    pub is_disabled: bool,
    /// Most sandboxes that it may have; none for the settings' number.
    pub max_sandboxes: Option<i64>,
    /// Number of failed logins in a row.
    pub failures: i64,
    /// Until when logins are refused.
    pub locked_until_ms: Option<i64>,
    /// When it was created.
    pub created_ms: i64,
}

sandyard_core::debug_fields!(User: name, role, is_disabled);

/// A user to insert.
#[derive(Clone, PartialEq, Eq)]
pub struct NewUser {
    /// Its name.
    pub name: String,
    /// Hash of its password.
    pub password_hash: Option<String>,
    /// Its role.
    pub role: Role,
    /// Most sandboxes that it may have; none for the settings' number.
    pub max_sandboxes: Option<i64>,
    /// When it was created.
    pub created_ms: i64,
}

sandyard_core::debug_fields!(NewUser: name, role, max_sandboxes);

/// Changes of a user. A field that is none stays unchanged.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct UserPatch {
    /// The hash of the new password.
    pub password_hash: Option<String>,
    /// New role.
    pub role: Option<Role>,
    /// Whether its credentials are rejected.
    pub is_disabled: Option<bool>,
    /// New quota; `Some(None)` for the settings' number.
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

/// An API key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Its public id.
    pub id: String,
    /// The name of its owner.
    pub owner: String,
    /// The owner's name for it.
    pub name: String,
    /// Its first and last characters, to recognise it.
    pub mask: String,
    /// The scopes that it has.
    pub scopes: Vec<Scope>,
    /// When it was created.
    pub created_ms: i64,
    /// When it expires.
    pub expires_ms: Option<i64>,
    /// When it was last used, to the minute.
    pub last_used_ms: Option<i64>,
    /// When it was revoked.
    pub revoked_ms: Option<i64>,
}

/// A key to insert.
#[derive(Clone, PartialEq, Eq)]
pub struct NewApiKey {
    /// Everything but the secret.
    pub key: ApiKey,
    /// SHA-256 of the key, in hexadecimal. A key has 160 random bits, so a slow hash would add nothing.
    pub hash: String,
}

sandyard_core::debug_fields!(NewApiKey: key);

/// A login session.
#[derive(Clone, PartialEq, Eq)]
pub struct Session {
    /// Its id, which is `sid` in the token.
    pub id: String,
    /// The name of its owner.
    pub owner: String,
    /// SHA-256 of the refresh token, in hex.
    pub refresh_hash: String,
    /// When it began.
    pub created_ms: i64,
    /// When it expires.
    pub expires_ms: i64,
    /// When it was revoked.
    pub revoked_ms: Option<i64>,
}

sandyard_core::debug_fields!(Session: id, owner, expires_ms, revoked_ms);
