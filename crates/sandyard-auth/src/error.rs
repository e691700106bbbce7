//! Failures of the authentication.

use std::fmt;

use sandyard_core::{ErrorKind, Scope};
use sandyard_store::StoreError;

/// Why a credential is rejected. Safe to show: it reveals nothing that the sender could not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The request has no credential.
    Missing,
    /// It is neither a token nor a key.
    Malformed,
    /// This installation never issued it, or its user is deleted.
    Unknown,
    /// Its signature is wrong.
    Forged,
    /// It has expired.
    Expired,
    /// It was revoked.
    Revoked,
    /// Its user is disabled.
    Disabled,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "there are none",
            Self::Malformed => "they are neither a token nor a key",
            Self::Unknown => "they are unknown to this server",
            Self::Forged => "their signature is wrong",
            Self::Expired => "they have expired",
            Self::Revoked => "they were revoked",
            Self::Disabled => "the user is disabled",
        })
    }
}

/// Result of the authentication.
pub(crate) type Result<T, E = AuthError> = std::result::Result<T, E>;

/// A failure of the authentication.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The credential is rejected.
    #[error("the credentials are not accepted: {reason}")]
    Unauthenticated {
        /// The reason.
        reason: Rejection,
    },
    /// The user does not exist, or the password is wrong. The message does not say which.
    #[error("wrong user name or password")]
    WrongPassword,
    /// Too many wrong passwords.
    #[error("too many failed logins; locked for another {retry_after_s} s")]
    Locked {
        /// Seconds until a login may work again.
        retry_after_s: u64,
    },
    /// More concurrent logins than the server handles.
    #[error("too many logins at the same time")]
    TooManyLogins,
    /// The caller may not grant a scope that it does not have.
    #[error("these credentials do not have the scope `{0}`, so they cannot create a key with it")]
    ScopeBeyondCaller(Scope),
    /// The caller may not create keys for other users.
    #[error("these credentials cannot create keys for `{owner}`")]
    ForeignKey {
        /// The owner of the requested key.
        owner: String,
    },
    /// Only a key with the scope `admin` may create keys.
    #[error("a key cannot create keys unless it has the scope `admin`")]
    KeyMakesKey,
    /// Only an admin's key can have the scope `admin`.
    #[error("`{owner}` is not an admin, so its keys cannot have the scope `admin`")]
    AdminScope {
        /// The owner of the requested key.
        owner: String,
    },
    /// Only a session can be logged out.
    #[error("these credentials are not a login session")]
    NoSession,
    /// A field has an invalid value.
    #[error("`{field}` {detail}")]
    Invalid {
        /// The name of the field.
        field: &'static str,
        /// What is wrong with it.
        detail: &'static str,
    },
    /// There is no such user.
    #[error("no user `{0}`")]
    UserNotFound(String),
    /// There is no such key, or it is not the caller's.
    #[error("no key `{0}`")]
    KeyNotFound(String),
    /// The name is taken.
    #[error("a user `{0}` already exists")]
    UserExists(String),
    /// The change would leave no enabled admin.
    #[error("`{0}` is the last enabled admin")]
    LastAdmin(String),
    /// The user has the maximum number of keys.
    #[error("`{owner}` has {limit} keys, which is the maximum")]
    TooManyKeys {
        /// The owner of the keys.
        owner: String,
        /// The maximum number of keys.
        limit: usize,
    },
    /// Another server is changing the users and did not finish in time.
    #[error("another server is changing the users")]
    Busy,
    /// A secret, given or stored, cannot be used.
    #[error("the secret `{name}` cannot be used: {detail}")]
    BadSecret {
        /// The name of the secret.
        name: &'static str,
        /// What is wrong.
        detail: &'static str,
    },
    /// The store failed.
    #[error("failed to use the store for authentication")]
    Store(#[from] StoreError),
    /// An internal error.
    #[error("failed to {action}")]
    Internal {
        /// What failed.
        action: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl AuthError {
    /// The kind of the failure, for the dialects.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unauthenticated { .. } | Self::WrongPassword => ErrorKind::Unauthenticated,
            Self::Locked { .. } | Self::TooManyLogins => ErrorKind::RateLimited,
            Self::ScopeBeyondCaller(_)
            | Self::ForeignKey { .. }
            | Self::KeyMakesKey
            | Self::AdminScope { .. } => ErrorKind::Forbidden,
            Self::NoSession | Self::Invalid { .. } => ErrorKind::Invalid,
            Self::UserNotFound(_) | Self::KeyNotFound(_) => ErrorKind::NotFound,
            Self::UserExists(_) | Self::LastAdmin(_) | Self::TooManyKeys { .. } => {
                ErrorKind::Conflict
            }
            Self::Busy => ErrorKind::Busy,
            Self::Store(StoreError::Unavailable { .. } | StoreError::DiskFailed { .. }) => {
                ErrorKind::Unavailable
            }
            Self::Store(StoreError::Full { .. }) => ErrorKind::NoSpace,
            Self::BadSecret { .. } | Self::Store(_) | Self::Internal { .. } => ErrorKind::Internal,
        }
    }

    /// What the caller can do.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Unauthenticated {
                reason: Rejection::Expired,
            } => "refresh the token, log in again or use another key",
            Self::Unauthenticated {
                reason: Rejection::Disabled,
            } => "ask an admin to enable the user",
            Self::Unauthenticated { .. } => {
                "send `Authorization: Bearer <token>` or `X-API-Key: <key>`"
            }
            Self::Locked { .. } => {
                "wait, or ask an admin to set a new password, which unlocks at once"
            }
            Self::TooManyLogins | Self::Busy => "try again in a moment",
            Self::ScopeBeyondCaller(_) | Self::ForeignKey { .. } => {
                "log in, or use a key with more scopes"
            }
            Self::KeyMakesKey => {
                "log in with name and password, and create the key with that token"
            }
            Self::AdminScope { .. } => "omit `admin` from the scopes",
            Self::NoSession => "to end a key, revoke it",
            Self::LastAdmin(_) => "create another admin first",
            Self::TooManyKeys { .. } => "revoke keys that you no longer use",
            Self::BadSecret { .. } => {
                "a secret needs at least 16 bytes; unset it to let the server create one"
            }
            _ => return None,
        })
    }

    /// Seconds after which the caller may try again, for `Retry-After`.
    pub fn retry_after_s(&self) -> Option<u64> {
        match self {
            Self::Locked { retry_after_s } => Some(*retry_after_s),
            Self::TooManyLogins | Self::Busy => Some(1),
            _ => None,
        }
    }
}

impl From<Rejection> for AuthError {
    fn from(reason: Rejection) -> Self {
        Self::Unauthenticated { reason }
    }
}
