//! What sandboxes reach, and secrets they use without seeing them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Other;

/// What a sandbox may reach. [`Default`]: what the server's operator lets everybody reach, with no entries.
///
/// Targets are names, `*.names`, addresses and networks, with or without `:port`. What is in `allow_out` is allowed, whatever
/// the rest says; then what is in `deny_out` is denied; then the rest is allowed if `allow_internet_access` is.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkPolicy {
    /// Whether what no entry names may be reached; none: up to the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_internet_access: Option<bool>,
    /// What may be reached in any case.
    #[serde(default)]
    pub allow_out: Vec<String>,
    /// What may not.
    #[serde(default)]
    pub deny_out: Vec<String>,
    /// By host, what is done to requests on their way: `api.example.com`, `*.example.com`, with or without `:port`; over TLS
    /// alone, unless written `http://registry.internal`.
    #[serde(default)]
    pub rules: BTreeMap<String, Vec<NetworkRule>>,
    /// Whether anybody may open the previews of its ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_public_traffic: Option<bool>,
    /// The `Host` that servers inside see on previews.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask_request_host: Option<String>,
    /// What else was said.
    #[serde(flatten)]
    pub other: Other,
}

impl fmt::Debug for NetworkPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetworkPolicy")
            .field("allow_internet_access", &self.allow_internet_access)
            .field("allow_out", &self.allow_out)
            .field("deny_out", &self.deny_out)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

/// What is done to a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkRule {
    /// How it is changed.
    #[serde(default)]
    pub transform: NetworkTransform,
}

/// How a request is changed.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkTransform {
    /// Headers that are set, whatever the program sent. In answers every value is `***`.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

impl fmt::Debug for NetworkTransform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.headers.keys()).finish()
    }
}

/// What a sandbox may reach, as the server answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// Which sandbox.
    pub sandbox_id: String,
    /// The policy in force.
    pub network: NetworkPolicy,
    /// What of it the sandbox's provider cannot see to.
    #[serde(default)]
    pub lacks: Vec<String>,
    /// What else was said.
    #[serde(flatten)]
    pub other: Other,
}

/// One attempt to reach something, or several alike in a short time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Counts up over all sandboxes.
    pub seq: i64,
    /// Which sandbox.
    pub sandbox_id: String,
    /// When it began.
    #[serde(default)]
    pub at: String,
    /// How long it took, in milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
    /// What it spoke: `tcp`, `udp`, `dns`, `icmp` or `other`; none: it stands for attempts of all kinds.
    #[serde(default)]
    pub protocol: Option<String>,
    /// The name it was for, where one is known.
    #[serde(default)]
    pub name: Option<String>,
    /// The address that was dialled, or meant.
    #[serde(default)]
    pub address: Option<String>,
    /// The port.
    #[serde(default)]
    pub port: Option<u16>,
    /// What became of it: `allowed`, `denied` or `failed`.
    pub verdict: String,
    /// Why it was denied, in a word for programs.
    #[serde(default)]
    pub code: Option<String>,
    /// Why it was denied or failed, for people.
    #[serde(default)]
    pub reason: Option<String>,
    /// Bytes from the sandbox.
    #[serde(default)]
    pub sent_bytes: u64,
    /// Bytes to it.
    #[serde(default)]
    pub received_bytes: u64,
    /// How many attempts this stands for.
    #[serde(default)]
    pub count: u64,
    /// Whether it stands for attempts of all kinds, which were too many to tell each of them.
    #[serde(default)]
    pub is_summary: bool,
    /// What else was said.
    #[serde(flatten)]
    pub other: Other,
}

/// Which flows to list.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FlowFilter {
    /// Only those that ended so: `allowed`, `denied` or `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// Only those after this number; none: the newest.
    #[serde(rename = "after", skip_serializing_if = "Option::is_none")]
    pub after_seq: Option<i64>,
    /// At most so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// A secret to be kept.
#[derive(Clone, Serialize)]
pub struct SecretRequest {
    /// What is kept. Never shown again.
    pub value: String,
    /// Where it may go, and nowhere else: `api.example.com`, `*.example.com`, with or without `:port`.
    pub hosts: Vec<String>,
    /// What sandboxes have in its place; none: up to the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<String>,
    /// Whether every user may use it; only an admin may say so.
    pub is_shared: bool,
}

impl fmt::Debug for SecretRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretRequest")
            .field("hosts", &self.hosts)
            .field("is_shared", &self.is_shared)
            .finish_non_exhaustive()
    }
}

/// What can be told of a secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Secret {
    /// Its name.
    pub name: String,
    /// Whose it is.
    #[serde(default)]
    pub owner: String,
    /// Where it may go, and nowhere else.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// What sandboxes have in its place.
    #[serde(default)]
    pub placeholder: String,
    /// Whether every user may use it.
    #[serde(default)]
    pub is_shared: bool,
    /// What else was said.
    #[serde(flatten)]
    pub other: Other,
}
