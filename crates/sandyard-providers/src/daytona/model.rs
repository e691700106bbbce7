//! Requests and answers of the API. Of each answer, only the fields that are used.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The configuration of the Daytona installation.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Configuration {
    pub(super) default_snapshot: Option<String>,
}

/// A sandbox.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sandbox {
    pub(super) id: String,
    pub(super) snapshot: Option<String>,
    #[serde(default)]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) state: State,
    pub(super) desired_state: Option<String>,
    pub(super) error_reason: Option<String>,
    /// Whether it can recover from its error.
    pub(super) recoverable: Option<bool>,
    #[serde(default)]
    pub(super) cpu: f64,
    /// In GiB, like `disk`.
    #[serde(default)]
    pub(super) memory: f64,
    #[serde(default)]
    pub(super) disk: f64,
    pub(super) created_at: Option<String>,
    pub(super) last_activity_at: Option<String>,
    /// When it is destroyed at the latest, if the account limits the lifespan of sandboxes.
    pub(super) auto_destroy_at: Option<String>,
    /// Its class: a container or a virtual machine.
    pub(super) sandbox_class: Option<String>,
    pub(super) toolbox_proxy_url: Option<String>,
}

sandyard_core::debug_fields!(Sandbox: id, state);

/// The state of a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    Creating,
    PendingBuild,
    BuildingSnapshot,
    PullingSnapshot,
    BuildFailed,
    Error,
    Started,
    Starting,
    Restoring,
    Stopped,
    Stopping,
    Archived,
    Archiving,
    Paused,
    Pausing,
    Resuming,
    Resizing,
    Snapshotting,
    Forking,
    Destroying,
    Destroyed,
    /// A state that this version does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

/// A list or a page of one.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Page<T> {
    /// A page.
    #[serde(rename_all = "camelCase")]
    Part {
        items: Vec<T>,
        next_cursor: Option<String>,
        page: Option<u64>,
        total_pages: Option<u64>,
    },
    /// COMPAT(daytona): a complete list, as in older versions.
    Complete(Vec<T>),
}

impl<T> Page<T> {
    pub(super) fn into_items(self) -> Vec<T> {
        match self {
            Self::Part { items, .. } | Self::Complete(items) => items,
        }
    }
}

/// Request to create a snapshot of a sandbox.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewSnapshot<'a> {
    pub(super) name: &'a str,
    /// Whether to include a virtual machine's memory, which requires that it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) include_memory: Option<bool>,
}

/// A snapshot, from which sandboxes start.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Snapshot {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) state: Option<String>,
    /// In GiB.
    pub(super) size: Option<f64>,
    #[serde(default)]
    pub(super) cpu: f64,
    #[serde(default)]
    pub(super) mem: f64,
    #[serde(default)]
    pub(super) disk: f64,
    pub(super) created_at: Option<String>,
    pub(super) error_reason: Option<String>,
    pub(super) sandbox_class: Option<String>,
    /// The sandbox it was created from; `None` for an image.
    pub(super) source_sandbox_id: Option<String>,
}

/// Request to create a sandbox.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreateSandbox<'a> {
    /// Unique, so that a repeated request creates one sandbox.
    pub(super) name: &'a str,
    pub(super) snapshot: &'a str,
    pub(super) env: &'a BTreeMap<String, String>,
    pub(super) labels: &'a BTreeMap<String, String>,
    pub(super) public: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<&'a str>,
    /// In minutes; zero for never.
    pub(super) auto_stop_interval: u64,
    /// The same for sandboxes that can be paused, instead of stopping them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) auto_pause_interval: Option<u64>,
    /// In minutes since it was stopped.
    pub(super) auto_archive_interval: u64,
    /// In minutes; negative for never.
    pub(super) auto_delete_interval: i64,
    #[serde(flatten)]
    pub(super) network: Network,
}

/// Egress of a sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Network {
    pub(super) network_block_all: bool,
    /// Networks, separated by commas; empty for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) network_allow_list: Option<String>,
    /// Names, separated by commas; empty for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) domain_allow_list: Option<String>,
}

/// Address of a port of a sandbox.
#[derive(Deserialize)]
pub(super) struct PreviewUrl {
    pub(super) url: String,
    pub(super) token: String,
}

sandyard_core::debug_fields!(PreviewUrl: url);

/// An address.
#[derive(Debug, Deserialize)]
pub(super) struct Address {
    pub(super) url: String,
}

/// A folder in a sandbox.
#[derive(Debug, Deserialize)]
pub(super) struct Folder {
    pub(super) dir: String,
}

/// A file in a sandbox.
#[derive(Debug, Deserialize)]
pub(super) struct FileInfo {
    #[serde(default)]
    pub(super) size: u64,
    #[serde(default, alias = "isDir")]
    pub(super) is_dir: bool,
}

/// Whether a program listens on a port of a sandbox.
#[derive(Debug, Deserialize)]
pub(super) struct PortUse {
    #[serde(default, rename = "isInUse")]
    pub(super) is_in_use: bool,
}

/// Current usage, as the sandbox reports it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SystemMetrics {
    pub(super) mem_used: Option<u64>,
    pub(super) mem_cache: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_and_unknown_fields_of_a_sandbox_are_accepted() {
        let text = r#"{"id": "a-1", "state": "sleeping", "env": {}, "labels": {"k": "v"}, "cpu": 2, "memory": 4, "disk": 8}"#;
        let read: Sandbox = serde_json::from_str(text).expect("a sandbox");
        assert_eq!(read.state, State::Unknown);
        assert_eq!(read.labels["k"], "v");
        let read: Sandbox =
            serde_json::from_str(r#"{"id": "a", "state": "pulling_snapshot"}"#).expect("a sandbox");
        assert_eq!(read.state, State::PullingSnapshot);
    }

    #[test]
    fn a_request_has_the_names_of_the_api() {
        let (env, labels) = (BTreeMap::new(), BTreeMap::new());
        let request = CreateSandbox {
            name: "n",
            snapshot: "s",
            env: &env,
            labels: &labels,
            public: false,
            target: None,
            auto_stop_interval: 15,
            auto_pause_interval: None,
            auto_archive_interval: 10080,
            auto_delete_interval: -1,
            network: Network {
                network_block_all: true,
                ..Network::default()
            },
        };
        let expected = serde_json::json!({
            "name": "n", "snapshot": "s", "env": {}, "labels": {}, "public": false,
            "autoStopInterval": 15, "autoArchiveInterval": 10080, "autoDeleteInterval": -1, "networkBlockAll": true,
        });
        assert_eq!(serde_json::to_value(&request).expect("JSON"), expected);
    }
}
