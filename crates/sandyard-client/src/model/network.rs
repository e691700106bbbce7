//! Egress policies, network activity, and secrets.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Other;

/// Egress policy: which hosts a sandbox may reach. [`Default`]: the operator's policy, without entries.
///
/// Targets are names, `*.name`, addresses and networks, with or without `:port`. Targets in `allow_out` are allowed in
/// any case; then targets in `deny_out` are denied; the rest is allowed if `allow_internet_access` is set.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkPolicy {
    /// Whether hosts that no entry names may be reached. `None`: the operator's policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_internet_access: Option<bool>,
    /// Hosts that may be reached in any case.
    #[serde(default)]
    pub allow_out: Vec<String>,
    /// Hosts that may not be reached.
    #[serde(default)]
    pub deny_out: Vec<String>,
    /// Changes made to requests, by host: `api.example.com` or `*.example.com`, with or without `:port`. They apply to
    /// TLS connections only, unless the host is written `http://registry.internal`.
    #[serde(default)]
    pub rules: BTreeMap<String, Vec<NetworkRule>>,
    /// Whether anyone may open the preview URLs of the sandbox's ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_public_traffic: Option<bool>,
    /// Value of the `Host` header that programs in the sandbox see on preview requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask_request_host: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}

sandyard_core::debug_fields!(NetworkPolicy: allow_internet_access, allow_out, deny_out, rules);

/// Rule for requests to a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkRule {
    /// Change that is made to each request.
    #[serde(default)]
    pub transform: NetworkTransform,
}

/// Change of a request.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkTransform {
    /// Headers to set, replacing what the program sent. Responses show every value as `***`.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

impl fmt::Debug for NetworkTransform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.headers.keys()).finish()
    }
}

/// Egress policy of a sandbox, as the server returns it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// ID of the sandbox.
    pub sandbox_id: String,
    /// Policy in force.
    pub network: NetworkPolicy,
    /// Parts of the policy that the sandbox's provider cannot enforce.
    #[serde(default)]
    pub limitations: Vec<String>,
    /// Old name of `limitations`, for servers of the previous version.
    #[serde(default, rename = "lacks")]
    old_limitations: Vec<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}

impl Network {
    /// Parts of the policy that the sandbox's provider cannot enforce, under the new name or the old one.
    pub fn limitations(&self) -> &[String] {
        match self.limitations.is_empty() {
            true => &self.old_limitations,
            false => &self.limitations,
        }
    }
}

/// Attempt of a sandbox to reach a host, or several similar attempts within a short time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Sequence number, increasing over all sandboxes.
    pub seq: i64,
    /// ID of the sandbox.
    pub sandbox_id: String,
    /// Time at which the attempt began (RFC 3339).
    #[serde(default)]
    pub at: String,
    /// Duration in milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
    /// Protocol: `tcp`, `udp`, `dns`, `icmp` or `other`. `None` in a summary.
    pub protocol: Option<String>,
    /// Host name, if known.
    pub name: Option<String>,
    /// IP address that was dialled, or would have been.
    pub address: Option<String>,
    /// Port of the remote host.
    pub port: Option<u16>,
    /// Outcome: `allowed`, `denied` or `failed`.
    pub verdict: String,
    /// Machine-readable reason for a denial.
    pub code: Option<String>,
    /// Explanation of a denial or failure for people.
    pub reason: Option<String>,
    /// Number of bytes that the sandbox sent.
    #[serde(default)]
    pub sent_bytes: u64,
    /// Number of bytes that the sandbox received.
    #[serde(default)]
    pub received_bytes: u64,
    /// Number of similar attempts that this entry stands for.
    #[serde(default)]
    pub count: u64,
    /// Whether this entry summarises attempts that were too many to list.
    #[serde(default)]
    pub is_summary: bool,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Filter for a list of flows.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FlowFilter {
    /// Return only flows with this outcome: `allowed`, `denied` or `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// Return only flows with a greater `seq`. `None`: the newest.
    #[serde(rename = "after", skip_serializing_if = "Option::is_none")]
    pub after_seq: Option<i64>,
    /// Maximum number of results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Secret to store.
#[derive(Clone, Serialize)]
pub struct SecretRequest {
    /// Value of the secret. It is never returned.
    pub value: String,
    /// Hosts that may receive the secret: `api.example.com` or `*.example.com`, with or without `:port`.
    pub hosts: Vec<String>,
    /// Text that stands for the secret inside sandboxes. `None`: made by the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<String>,
    /// Whether every user may use the secret. Only an admin may set it.
    pub is_shared: bool,
}

sandyard_core::debug_fields!(SecretRequest: hosts, is_shared);

/// Secret without its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Secret {
    /// Name of the secret.
    pub name: String,
    /// User who owns the secret.
    #[serde(default)]
    pub owner: String,
    /// Hosts that may receive the secret.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Text that stands for the secret inside sandboxes.
    #[serde(default)]
    pub placeholder: String,
    /// Whether every user may use the secret.
    #[serde(default)]
    pub is_shared: bool,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}
