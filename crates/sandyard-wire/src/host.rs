//! Messages that only the host sends, over the socket it bound itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::json::{self, is_default, null_default};

/// Settings of a sandbox for its agent. It may be sent again: each present field replaces the earlier value.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct InitRequest {
    /// Environment variables of every command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env_vars: Option<BTreeMap<String, String>>,
    /// The access token that callers inside the sandbox must present; empty: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_token: Option<String>,
    /// The user that runs commands when a request names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_user: Option<String>,
    /// The working directory of commands when a request names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_workdir: Option<String>,
    /// The sandbox's host name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
}

/// Leaves out the token and the variables' values, which must not reach logs.
impl std::fmt::Debug for InitRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self
            .env_vars
            .as_ref()
            .map(|vars| vars.keys().collect::<Vec<_>>());
        f.debug_struct("InitRequest")
            .field("env_vars", &names)
            .field("access_token", &self.access_token.as_ref().map(|_| "…"))
            .field("default_user", &self.default_user)
            .field("default_workdir", &self.default_workdir)
            .field("hostname", &self.hostname)
            .finish()
    }
}

/// What a sandbox is busy with. The server decides from it whether the sandbox is idle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Activity {
    /// Commands running now.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "json::int")]
    pub processes: u32,
    /// Streams, transfers and dialled connections open now.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "json::int")]
    pub streams: u32,
    /// Requests answered since the agent started, without those for health, metrics and activity.
    #[serde(skip_serializing_if = "is_default", with = "json::int64")]
    pub requests: u64,
    /// Bytes moved since then: command input and output, files, dialled connections.
    #[serde(skip_serializing_if = "is_default", with = "json::int64")]
    pub bytes: u64,
    /// Milliseconds since anything of the above last changed.
    #[serde(skip_serializing_if = "is_default", with = "json::int64")]
    pub idle_ms: u64,
    /// Whether an init request has been received.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    pub initialised: bool,
}

/// A command whose output and end the agent retains until it is released.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RetainedCommand {
    /// The id its caller gave it.
    #[serde(deserialize_with = "null_default")]
    pub id: String,
    /// Its process id inside the sandbox.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "json::int")]
    pub pid: u32,
    /// Milliseconds since it was started.
    #[serde(skip_serializing_if = "is_default", with = "json::int64")]
    pub age_ms: u64,
    /// How long it ran, in milliseconds; `None` while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ran_ms: Option<u64>,
}

/// The commands that the agent retains.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RetainedCommands {
    /// In order of start.
    #[serde(deserialize_with = "json::list")]
    pub commands: Vec<RetainedCommand>,
}

/// Names retained commands whose output and end the server has recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReleaseRequest {
    /// Their ids.
    #[serde(deserialize_with = "null_default")]
    pub ids: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printing_an_init_request_shows_no_secret() {
        let request = InitRequest {
            env_vars: Some(BTreeMap::from([("KEY".into(), "hidden-1".into())])),
            access_token: Some("hidden-2".into()),
            ..InitRequest::default()
        };
        let text = format!("{request:?}");
        assert!(text.contains("KEY") && !text.contains("hidden"), "{text}");
    }
}
