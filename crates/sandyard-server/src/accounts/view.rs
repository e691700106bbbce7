//! Users and keys as responses show them.

use sandyard_auth::UserView;
use sandyard_core::{Role, Scope};
use sandyard_store::model::ApiKey;

use crate::prelude::*;

/// User account.
#[derive(Serialize, ToSchema)]
pub(crate) struct User {
    /// Name of the user.
    pub(crate) name: String,
    /// Same as `name`.
    username: String,
    /// Role of the user.
    role: Role,
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
            role: user.role,
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
    scopes: Vec<Scope>,
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
            scopes: key.scopes,
            created_at: iso(key.created_ms),
            expires_at: optional_iso(key.expires_ms),
            last_used_at: optional_iso(key.last_used_ms),
            revoked_at: optional_iso(key.revoked_ms),
        }
    }
}
