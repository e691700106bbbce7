//! Failures of the authentication.

use std::fmt;

use sandyard_core::{ErrorKind, Scope};
use sandyard_store::StoreError;

/// Why a credential is not good. Safe to tell: it says nothing that the one who sent it could not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// There is none.
    Missing,
    /// It is neither a token nor a key.
    Malformed,
    /// We never made it, or its user is gone.
    Unknown,
    /// Its signature is not ours.
    Forged,
    /// Its time is over.
    Expired,
    /// It was ended before its time.
    Revoked,
    /// Its user may do nothing.
    Disabled,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "there are none",
            Self::Malformed => "they are neither a token nor a key",
            Self::Unknown => "they are not known here",
            Self::Forged => "their signature is wrong",
            Self::Expired => "they have expired",
            Self::Revoked => "they were revoked",
            Self::Disabled => "the user is disabled",
        })
    }
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The credential is not good.
    #[error("the credentials are not accepted: {why}")]
    Unauthenticated {
        /// Why not.
        why: Why,
    },
    /// No such user, or not its password. Which of the two is not said.
    #[error("wrong user name or password")]
    WrongPassword,
    /// Too many wrong passwords.
    #[error("too many failed logins; locked for another {retry_after_s} s")]
    Locked {
        /// Seconds until a login may work again.
        retry_after_s: u64,
    },
    /// More logins at once than are worked on.
    #[error("too many logins at the same time")]
    TooManyLogins,
    /// The caller may not give away a right that it does not have.
    #[error("these credentials lack the scope `{0}`, so they cannot make a key with it")]
    ScopeBeyondCaller(Scope),
    /// The caller may not make keys for others.
    #[error("these credentials cannot make keys for `{owner}`")]
    ForeignKey {
        /// For whom.
        owner: String,
    },
    /// A key that is no admin's makes no keys.
    #[error("a key cannot make keys, unless it has the scope `admin`")]
    KeyMakesKey,
    /// Only an admin's key can have the scope `admin`.
    #[error("`{owner}` is not an admin, so its keys cannot have the scope `admin`")]
    AdminScope {
        /// Whose key.
        owner: String,
    },
    /// Only a session can be logged out of.
    #[error("these credentials are no login")]
    NoSession,
    /// A field has a value that makes no sense.
    #[error("`{field}` {detail}")]
    Invalid {
        /// Which.
        field: &'static str,
        /// What it should be.
        detail: &'static str,
    },
    /// There is no such user.
    #[error("there is no user `{0}`")]
    UserNotFound(String),
    /// There is no such key, or it is not the caller's.
    #[error("there is no key `{0}`")]
    KeyNotFound(String),
    /// The name is taken.
    #[error("there is already a user `{0}`")]
    UserExists(String),
    /// It would leave nobody who can administer.
    #[error("`{0}` is the last enabled admin")]
    LastAdmin(String),
    /// The user has as many keys as one may have.
    #[error("`{owner}` has {limit} keys already")]
    TooManyKeys {
        /// Whose.
        owner: String,
        /// How many are allowed.
        limit: usize,
    },
    /// Another server changes the admins and did not finish in time.
    #[error("another server is changing the users")]
    Busy,
    /// A secret, given or stored, cannot be used.
    #[error("the secret `{name}` cannot be used: {detail}")]
    BadSecret {
        /// Which.
        name: &'static str,
        /// What is wrong.
        detail: &'static str,
    },
    /// The store failed.
    #[error("failed to use the store for authentication")]
    Store(#[from] StoreError),
    /// Our own fault.
    #[error("failed to {doing}")]
    Internal {
        /// What was being done.
        doing: &'static str,
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl AuthError {
    /// What kind of failure it is, for the dialects.
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

    /// What the one who asked may do about it.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Unauthenticated { why: Why::Expired } => {
                "refresh the token, log in again or use another key"
            }
            Self::Unauthenticated { why: Why::Disabled } => "ask an admin to enable the user",
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
            Self::KeyMakesKey => "log in with name and password, and make it with that token",
            Self::AdminScope { .. } => "leave `admin` out of the scopes",
            Self::NoSession => "a key is ended by revoking it",
            Self::LastAdmin(_) => "make another admin first",
            Self::TooManyKeys { .. } => "revoke keys that are not used any more",
            Self::BadSecret { .. } => "a secret has at least 16 bytes; unset it to have one made",
            _ => return None,
        })
    }

    /// Seconds after which trying again makes sense, for `Retry-After`.
    pub fn retry_after_s(&self) -> Option<u64> {
        match self {
            Self::Locked { retry_after_s } => Some(*retry_after_s),
            Self::TooManyLogins | Self::Busy => Some(1),
            _ => None,
        }
    }
}

impl From<Why> for AuthError {
    fn from(why: Why) -> Self {
        Self::Unauthenticated { why }
    }
}
