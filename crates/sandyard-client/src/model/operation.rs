//! What those ask who keep a server running.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Other;

/// How the server is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// `healthy`, `degraded` while a provider cannot be reached, or what else.
    pub status: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// Where sandboxes run, the default first.
    #[serde(default)]
    pub providers: Vec<Provider>,
    /// What else was said: provider, store, counts.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// How the server is reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerInfo {
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// For programs written for E2B.
    pub e2b: E2bInfo,
    /// Where sandboxes run, the default first.
    #[serde(default)]
    pub providers: Vec<Provider>,
    /// What else was said.
    #[serde(flatten)]
    pub other: Other,
}

/// Where sandboxes run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provider {
    /// Its name.
    pub name: String,
    /// `healthy` or `unreachable`.
    #[serde(default)]
    pub status: String,
    /// When that last changed.
    #[serde(default)]
    pub since: Option<String>,
    /// Why it cannot be reached; for admins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether it makes what nobody asks another one for.
    #[serde(default)]
    pub default: bool,
    /// What can be done with its sandboxes, by word: `pause`, `snapshot`, …
    #[serde(default)]
    pub capabilities: BTreeMap<String, bool>,
    /// What else was said.
    #[serde(flatten)]
    pub other: Other,
}

/// How a program written for E2B is pointed at the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct E2bInfo {
    /// Where E2B's API is.
    pub url: String,
    /// What stands behind `{port}-{id}.` in the hosts of ports.
    pub domain: String,
    /// Whether the domain alone is enough to reach everything.
    #[serde(default)]
    pub is_domain_enough: bool,
    /// Whether the API has a listener of its own. If not, it is below a path, which some clients drop.
    #[serde(default)]
    pub has_listener: bool,
}

/// What sandboxes start from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Template {
    /// Its name.
    pub name: String,
    /// The provider that has it.
    #[serde(default)]
    pub provider: String,
    /// How many bytes it takes.
    #[serde(default)]
    pub size_bytes: Option<u64>,
    /// What else was said.
    #[serde(flatten)]
    pub other: Other,
}

/// One of the servers that share a store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Its name; new at every start.
    pub id: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// What else was said.
    #[serde(flatten)]
    pub other: Other,
}

/// An instance of the installation that the server's database knows nothing of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnknownInstance {
    /// Its provider's name for it.
    pub id: String,
    /// The provider it is with.
    pub provider: String,
    /// The sandbox it was made for, as it says itself.
    #[serde(default)]
    pub sandbox_id: Option<String>,
    /// What it is at this moment.
    #[serde(default)]
    pub state: String,
    /// What else was said.
    #[serde(flatten)]
    pub other: Other,
}

/// A timer that was given up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadTimer {
    /// What it was for: a sandbox's id.
    pub subject: String,
    /// How often it was tried.
    #[serde(default)]
    pub attempts: i64,
    /// Why the last try failed.
    #[serde(default)]
    pub last_error: Option<String>,
    /// What else was said.
    #[serde(flatten)]
    pub other: Other,
}
