//! The caller of a request, and what it may do.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Role of a user: `admin` may do everything, `user` only sees what belongs to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// May do everything, for every user.
    Admin,
    /// Sees only their own resources.
    User,
}

impl Role {
    /// The name in the store and in tokens.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::User => "user",
        }
    }
}

/// Permission of a key.
///
/// `read` views sandboxes, `use` runs commands and accesses files, `manage` creates, changes and deletes, `admin` administers the
/// server. Scopes do not include each other: list all that the key needs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Read status, lists, logs, events and metrics.
    Read,
    /// Run commands, read and write files, open ports and terminals.
    Use,
    /// Create, pause, resume, snapshot and delete sandboxes.
    Manage,
    /// Manage users, all keys, audit, templates and operations. Only an admin's key can have it.
    Admin,
}

impl Scope {
    /// All scopes, the weakest first.
    pub const ALL: [Self; 4] = [Self::Read, Self::Use, Self::Manage, Self::Admin];

    /// The name in the store and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Use => "use",
            Self::Manage => "manage",
            Self::Admin => "admin",
        }
    }
}

/// A text that is neither a role nor a scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither a role nor a scope")]
pub struct UnknownRight(pub String);

impl FromStr for Role {
    type Err = UnknownRight;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "admin" => Ok(Self::Admin),
            "user" => Ok(Self::User),
            _ => Err(UnknownRight(text.to_owned())),
        }
    }
}

impl FromStr for Scope {
    type Err = UnknownRight;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|scope| scope.as_str() == text)
            .ok_or_else(|| UnknownRight(text.to_owned()))
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The caller of a request. Only the authentication and [`Caller::system`] create one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The name of the user. Sandboxes belong to names, so that an admin may create one for a user without an account.
    pub name: String,
    /// The role of the user.
    pub role: Role,
    /// The scopes of the credentials.
    pub scopes: Vec<Scope>,
    /// The credentials, for the audit: `key:<id>`, `session:<id>`, `local`, `system`.
    pub via: String,
}

impl Caller {
    /// The server itself: timers and the reconciler.
    pub fn system() -> Self {
        Self {
            name: "system".to_owned(),
            role: Role::Admin,
            scopes: Scope::ALL.to_vec(),
            via: "system".to_owned(),
        }
    }

    /// A client of an open loopback listener: a user of this host.
    pub fn local() -> Self {
        Self {
            name: "local".to_owned(),
            via: "local".to_owned(),
            ..Self::system()
        }
    }

    /// Says whether the caller is an admin.
    pub fn is_admin(&self) -> bool {
        self.role == Role::Admin
    }

    /// Says whether the credentials have a scope.
    pub fn has(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope) && (scope != Scope::Admin || self.is_admin())
    }

    /// Says whether the caller may see and change what belongs to `owner`.
    pub fn can_access(&self, owner: &str) -> bool {
        self.is_admin() || self.name == owner
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_owns_only_its_own() {
        let alice = Caller {
            name: "alice".to_owned(),
            role: Role::User,
            scopes: Scope::ALL.to_vec(),
            via: "key:1".to_owned(),
        };
        assert!(alice.can_access("alice") && !alice.can_access("bob"));
        assert!(!alice.has(Scope::Admin), "a scope does not make an admin");
        assert!(Caller::local().can_access("bob"));
    }
}
