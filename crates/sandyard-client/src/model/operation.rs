//! Health, providers, nodes and repair.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Other;

/// Health of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// `healthy`, `degraded`, `stopping` or `unhealthy`.
    pub status: String,
    /// Version of the server.
    #[serde(default)]
    pub version: String,
    /// Providers of the server, the default first.
    #[serde(default)]
    pub providers: Vec<Provider>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Information about the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerInfo {
    /// Version of the server.
    #[serde(default)]
    pub version: String,
    /// User that the credentials belong to. Empty: the server does not say.
    #[serde(default)]
    pub user: String,
    /// Whether that user is an admin.
    #[serde(default)]
    pub is_admin: bool,
    /// Addresses for clients of E2B.
    pub e2b: E2bInfo,
    /// Providers of the server, the default first.
    #[serde(default)]
    pub providers: Vec<Provider>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Provider of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provider {
    /// Name.
    pub name: String,
    /// `healthy` or `unreachable`.
    #[serde(default)]
    pub status: String,
    /// Time at which the status last changed (RFC 3339).
    pub since: Option<String>,
    /// Reason why the provider is unreachable. Shown to admins only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether this is the default provider.
    #[serde(default)]
    pub default: bool,
    /// Operations that the provider supports: `pause`, `snapshot` and so on.
    #[serde(default)]
    pub capabilities: BTreeMap<String, bool>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Settings that point a client of E2B at the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct E2bInfo {
    /// URL of the E2B-compatible API.
    pub url: String,
    /// Domain of sandbox ports: a port is reached at `{port}-{id}.` followed by this.
    pub domain: String,
    /// Whether setting the domain alone is enough.
    #[serde(default)]
    pub is_domain_enough: bool,
    /// Whether the API has a listener of its own. If not, it is below a path, which some clients drop.
    #[serde(default)]
    pub has_listener: bool,
}

/// Templates that sandboxes start from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Template {
    /// Name.
    pub name: String,
    /// Provider that has the template.
    #[serde(default)]
    pub provider: String,
    /// Size in bytes.
    pub size_bytes: Option<u64>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Server that shares the database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// ID of the node, new at every start.
    pub id: String,
    /// Version of the server.
    #[serde(default)]
    pub version: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Instance of the installation that is not in the server's database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnknownInstance {
    /// ID that the provider gave the instance.
    pub id: String,
    /// Provider that runs the instance.
    pub provider: String,
    /// ID of the sandbox that the instance was created for, according to its label.
    pub sandbox_id: Option<String>,
    /// State according to the provider.
    #[serde(default)]
    pub state: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Timer that is no longer retried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadTimer {
    /// ID of the sandbox that the timer belongs to.
    pub subject: String,
    /// Number of attempts so far.
    #[serde(default)]
    pub attempts: i64,
    /// Error of the last attempt.
    pub last_error: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}
