//! Users and keys as responses show them.

use sandyard_auth::UserView;
use sandyard_core::{Role, Scope};
use sandyard_store::model::ApiKey;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::time::{iso, optional_iso};

/// Role of a user: `admin` may do everything, `user` only sees what belongs to them.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RoleWord {
    /// May do everything, for every user.
    Admin,
    /// Sees only their own resources.
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

/// Permission of a key: `read` views sandboxes, `use` runs commands and accesses files, `manage` creates, changes
/// and deletes, `admin` administers the server. Scopes do not include each other: list all that the key needs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScopeWord {
    /// Read status, lists, logs, events and metrics.
    Read,
    /// Run commands, read and write files, open ports.
    Use,
    /// Create, pause, resume, snapshot and delete sandboxes.
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

/// User account.
#[derive(Serialize, ToSchema)]
pub(crate) struct User {
    /// Name of the user.
    pub(crate) name: String,
    /// Same as `name`.
    username: String,
    /// Role of the user.
    role: RoleWord,
    /// Whether the account is disabled: the user can neither log in nor use keys.
    disabled: bool,
    /// Whether the user has a password and can log in.
    has_password: bool,
    /// Maximum number of sandboxes of the user. Null: the server's setting `limits.sandboxes_per_user` applies.
    max_sandboxes: Option<i64>,
    /// Time at which the user was created (RFC 3339).
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

/// API key, without the key itself.
#[derive(Serialize, ToSchema)]
pub(crate) struct Key {
    /// ID of the key, used to revoke it.
    pub(crate) id: String,
    /// Name that the owner gave the key.
    name: String,
    /// User whom the key belongs to.
    owner: String,
    /// Beginning and end of the key, to recognise it by.
    mask: String,
    /// Operations that the key permits.
    scopes: Vec<ScopeWord>,
    /// Time at which the key was created (RFC 3339).
    created_at: String,
    /// Time at which the key expires (RFC 3339). Null: never.
    expires_at: Option<String>,
    /// Time of the last request with the key (RFC 3339). Null: never used.
    last_used_at: Option<String>,
    /// Time at which the key was revoked (RFC 3339). Null unless it was.
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
