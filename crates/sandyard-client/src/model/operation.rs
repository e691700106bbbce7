//! What those ask who keep a server running.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Other;

/// How the server is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// `healthy`, or what else.
    pub status: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
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
