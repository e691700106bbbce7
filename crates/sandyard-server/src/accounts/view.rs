//! Users and keys as answers show them.

use sandyard_auth::UserView;
use sandyard_core::{Role, Scope};
use sandyard_store::model::ApiKey;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::time::{iso, optional_iso};

/// What a user is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RoleWord {
    /// Sees and does everything, for every user.
    Admin,
    /// Sees only what is its own.
    User,
}

impl From<Role> for RoleWord {
    fn from(role: Role) -> Self {
        match role {
            Role::Admin => Self::Admin,
            Role::User => Self::User,
        }
    }
}

impl From<RoleWord> for Role {
    fn from(word: RoleWord) -> Self {
        match word {
            RoleWord::Admin => Self::Admin,
            RoleWord::User => Self::User,
        }
    }
}

/// What a key may be used for.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScopeWord {
    /// Look.
    Read,
    /// Run commands, read and write files, open ports.
    Use,
    /// Make, pause, resume, snapshot and delete sandboxes.
    Manage,
    /// Users, keys of others, audit, templates, operations.
    Admin,
}

impl From<Scope> for ScopeWord {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Read => Self::Read,
            Scope::Use => Self::Use,
            Scope::Manage => Self::Manage,
            Scope::Admin => Self::Admin,
        }
    }
}

impl From<ScopeWord> for Scope {
    fn from(word: ScopeWord) -> Self {
        match word {
            ScopeWord::Read => Self::Read,
            ScopeWord::Use => Self::Use,
            ScopeWord::Manage => Self::Manage,
            ScopeWord::Admin => Self::Admin,
        }
    }
}

/// A user.
#[derive(Serialize, ToSchema)]
pub(crate) struct User {
    pub(crate) name: String,
    /// The same as `name`.
    username: String,
    role: RoleWord,
    /// It may do nothing.
    disabled: bool,
    /// It can log in.
    has_password: bool,
    /// How many sandboxes it may have; none: the settings' number.
    max_sandboxes: Option<i64>,
    created_at: String,
}

impl From<UserView> for User {
    fn from(user: UserView) -> Self {
        Self {
            username: user.name.clone(),
            name: user.name,
            role: user.role.into(),
            disabled: user.is_disabled,
            has_password: user.has_password,
            max_sandboxes: user.max_sandboxes,
            created_at: iso(user.created_ms),
        }
    }
}

/// A key, without the key.
#[derive(Serialize, ToSchema)]
pub(crate) struct Key {
    /// Its public name.
    pub(crate) id: String,
    /// What its owner calls it.
    name: String,
    owner: String,
    /// How it begins and ends, to recognise it by.
    mask: String,
    scopes: Vec<ScopeWord>,
    created_at: String,
    expires_at: Option<String>,
    last_used_at: Option<String>,
    revoked_at: Option<String>,
}

impl From<ApiKey> for Key {
    fn from(key: ApiKey) -> Self {
        Self {
            id: key.id,
            name: key.name,
            owner: key.owner,
            mask: key.mask,
            scopes: key.scopes.into_iter().map(ScopeWord::from).collect(),
            created_at: iso(key.created_ms),
            expires_at: optional_iso(key.expires_ms),
            last_used_at: optional_iso(key.last_used_ms),
            revoked_at: optional_iso(key.revoked_ms),
        }
    }
}
