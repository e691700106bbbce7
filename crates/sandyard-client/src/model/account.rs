//! Users and their keys.

use serde::{Deserialize, Serialize};

use super::Other;

/// User account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct User {
    /// Name of the user.
    pub name: String,
    /// `admin` or `user`.
    #[serde(default)]
    pub role: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Request to create a user.
#[derive(Clone, Serialize)]
pub struct UserRequest {
    /// Name of the user.
    pub name: String,
    /// Password. `None`: the user cannot log in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// `admin` or `user`.
    pub role: String,
    /// Maximum number of sandboxes. `None`: the server's setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_sandboxes: Option<i64>,
}

sandyard_core::debug_fields!(UserRequest: name, role);

/// Changes to a user. `None` leaves a field as it is.
#[derive(Clone, Default, Serialize)]
pub struct UserChange {
    /// New password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// New role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Whether the account is disabled.
    #[serde(rename = "disabled", skip_serializing_if = "Option::is_none")]
    pub is_disabled: Option<bool>,
    /// Maximum number of sandboxes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_sandboxes: Option<i64>,
}

sandyard_core::debug_fields!(UserChange: role, is_disabled, max_sandboxes);

/// API key, without the key itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApiKey {
    /// ID of the key.
    pub id: String,
    /// Name that the owner gave the key.
    #[serde(default)]
    pub name: String,
    /// User whom the key belongs to.
    #[serde(default)]
    pub owner: String,
    /// Beginning and end of the key.
    #[serde(default)]
    pub mask: String,
    /// Operations that the key permits.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Request to create an API key.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KeyRequest {
    /// Name of the key.
    pub name: String,
    /// User whom the key belongs to. Only an admin may name another user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Operations that the key permits. Empty: all that the caller may do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Lifetime in seconds. `None`: unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
}

/// Created API key. The key itself is shown only here.
#[derive(Clone, Serialize, Deserialize)]
pub struct NewKey {
    /// The key itself. Do not log it.
    pub key: String,
    /// Information about the key.
    #[serde(flatten)]
    pub about: ApiKey,
}

sandyard_core::debug_fields!(NewKey: about);
