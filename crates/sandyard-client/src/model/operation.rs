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
