//! Who is asking, and what that person or program may do.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a user is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Sees and does everything, for every user.
    Admin,
    /// Sees only what is its own.
    User,
}

impl Role {
    /// The word in the store and in tokens.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::User => "user",
        }
    }
}

/// One kind of thing a key may be used for. A route names the one it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Look: status, info, lists, logs, events, metrics.
    Read,
    /// Use: run commands, read and write files, open ports and terminals.
    Use,
    /// Make, pause, resume, snapshot and delete sandboxes.
    Manage,
    /// Users, other people's keys, audit, templates, operations. Only an admin's key can have it.
    Admin,
}

impl Scope {
    /// All of them, weakest first.
    pub const ALL: [Self; 4] = [Self::Read, Self::Use, Self::Manage, Self::Admin];

    /// The word in the store and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Use => "use",
            Self::Manage => "manage",
            Self::Admin => "admin",
        }
    }
}

/// Says that a text is no role or scope.
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

/// Who is asking. Made by the authentication at the edge, or by [`Caller::system`]; nothing else makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Name of the user. Sandboxes belong to names, so that an admin may make one for a user who never logs in.
    pub name: String,
    /// What that user is.
    pub role: Role,
    /// What these credentials may be used for.
    pub scopes: Vec<Scope>,
    /// Which credentials they were, for the audit: `key:<id>`, `session:<id>`, `local`, `system`.
    pub via: String,
}

impl Caller {
    /// Sandyard itself: timers and reconcilers.
    pub fn system() -> Self {
        Self {
            name: "system".to_owned(),
            role: Role::Admin,
            scopes: Scope::ALL.to_vec(),
            via: "system".to_owned(),
        }
    }

    /// Whoever reaches an open loopback listener: this host's own people.
    pub fn local() -> Self {
        Self {
            name: "local".to_owned(),
            via: "local".to_owned(),
            ..Self::system()
        }
    }

    /// Says whether it acts for everybody.
    pub fn is_admin(&self) -> bool {
        self.role == Role::Admin
    }

    /// Says whether these credentials may be used for `scope`.
    pub fn has(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope) && (scope != Scope::Admin || self.is_admin())
    }

    /// Says whether it may touch what belongs to `owner`.
    pub fn owns(&self, owner: &str) -> bool {
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
        assert!(alice.owns("alice") && !alice.owns("bob"));
        assert!(!alice.has(Scope::Admin), "a scope does not make an admin");
        assert!(Caller::local().owns("bob"));
    }
}
