//! Users and their keys.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Other;

/// A user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct User {
    /// Its name.
    pub name: String,
    /// `admin` or `user`.
    #[serde(default)]
    pub role: String,
    /// What else was said.
    #[serde(flatten)]
    pub other: Other,
}

/// A user to be made.
#[derive(Clone, Serialize)]
pub struct UserRequest {
    /// Its name.
    pub name: String,
    /// Its password; none: it cannot log in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// `admin` or `user`.
    pub role: String,
    /// How many sandboxes it may have; none: up to the settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_sandboxes: Option<i64>,
}

impl fmt::Debug for UserRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserRequest")
            .field("name", &self.name)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

/// What changes of a user; what is empty stays.
#[derive(Clone, Default, Serialize)]
pub struct UserChange {
    /// Its new password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Its new role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Whether it is shut out.
    #[serde(rename = "disabled", skip_serializing_if = "Option::is_none")]
    pub is_disabled: Option<bool>,
    /// How many sandboxes it may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_sandboxes: Option<i64>,
}

impl fmt::Debug for UserChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserChange")
            .field("role", &self.role)
            .field("is_disabled", &self.is_disabled)
            .field("max_sandboxes", &self.max_sandboxes)
            .finish_non_exhaustive()
    }
}

/// A key, without the key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApiKey {
    /// Its public name.
    pub id: String,
    /// What its owner calls it.
    #[serde(default)]
    pub name: String,
    /// Whose.
    #[serde(default)]
    pub owner: String,
    /// How it begins and ends.
    #[serde(default)]
    pub mask: String,
    /// What it may be used for.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// What else was said.
    #[serde(flatten)]
    pub other: Other,
}

/// A key to be made.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KeyRequest {
    /// What to call it.
    pub name: String,
    /// Whose; only an admin may name somebody else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// What it may be used for; empty: all that its owner may do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Seconds until it ends; none: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
}

/// A key that was just made: the only time it is shown.
#[derive(Clone, Serialize, Deserialize)]
pub struct NewKey {
    /// The key itself. A secret.
    pub key: String,
    /// All that may be shown of it.
    #[serde(flatten)]
    pub about: ApiKey,
}

impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewKey")
            .field("about", &self.about)
            .finish_non_exhaustive()
    }
}
