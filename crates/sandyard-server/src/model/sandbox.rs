//! A sandbox as the native dialect, its envelope and the MCP tools show it.

use std::collections::BTreeMap;

use crate::prelude::*;

use sandyard_core::SandboxStatus;
use sandyard_core::size::Size;
use sandyard_service::{Expiry, Sandbox, TimeoutAction};

use super::network::NetworkView;
use super::provider::CapabilitiesView;

/// Status of a sandbox: `initializing` while it is being created, `running`, `paused` (paused or stopped; a request
/// wakes it), `error` (it failed; see `reason`), `deleted` (being deleted, or gone).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SandboxStatus)]
pub(crate) enum Status {
    /// The sandbox is being created.
    Initializing,
    /// It runs.
    Running,
    /// The sandbox is paused or stopped; the next request wakes it.
    Paused,
    /// The sandbox failed.
    Error,
    /// The sandbox is deleted or being deleted.
    Deleted,
}

impl From<SandboxStatus> for Status {
    fn from(status: SandboxStatus) -> Self {
        match status {
            SandboxStatus::Creating => Self::Initializing,
            SandboxStatus::Running => Self::Running,
            SandboxStatus::Paused | SandboxStatus::Stopped => Self::Paused,
            SandboxStatus::Error => Self::Error,
            SandboxStatus::Deleting | SandboxStatus::Deleted => Self::Deleted,
        }
    }
}

impl Status {
    /// Statuses of the service that this one stands for.
    pub(crate) fn statuses(self) -> Vec<SandboxStatus> {
        let looks_alike = |status: &SandboxStatus| Self::from(*status) == self;
        SandboxStatus::ALL.into_iter().filter(looks_alike).collect()
    }
}

/// Sandbox after the operation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SandboxReply {
    /// Always `true`; a failed request has an error status instead.
    pub(crate) success: bool,
    /// ID of the sandbox.
    pub(crate) sandbox_id: String,
    /// ID that the provider gave the sandbox. Null until the provider has created it.
    pub(crate) provider_sandbox_id: Option<String>,
    /// Current status of the sandbox.
    pub(crate) status: Status,
    /// URL of the tool server for MCP clients.
    pub(crate) mcp_url: String,
    /// URL of VS Code in the browser.
    pub(crate) vscode_url: String,
    /// Summary of the result for people.
    pub(crate) message: String,
}

impl SandboxReply {
    pub(crate) fn new(sandbox: &Sandbox, call: &Call, message: &str) -> Self {
        Self {
            success: true,
            sandbox_id: sandbox.id.to_string(),
            provider_sandbox_id: sandbox.provider_id.clone(),
            status: sandbox.status.into(),
            mcp_url: call.links.mcp(&sandbox.id),
            vscode_url: call.links.vscode(&sandbox.id),
            message: message.to_owned(),
        }
    }
}

/// Status of a sandbox.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatusReply {
    /// ID of the sandbox.
    pub(crate) sandbox_id: String,
    /// Current status of the sandbox.
    pub(crate) status: Status,
    /// ID that the provider gave the sandbox. Null until the provider has created it.
    pub(crate) provider_sandbox_id: Option<String>,
    /// Explanation of the status, for example why the sandbox failed or was paused. Null if there is nothing to
    /// explain.
    pub(crate) reason: Option<String>,
}

impl From<&Sandbox> for StatusReply {
    fn from(sandbox: &Sandbox) -> Self {
        Self {
            sandbox_id: sandbox.id.to_string(),
            status: sandbox.status.into(),
            provider_sandbox_id: sandbox.provider_id.clone(),
            reason: sandbox.reason.clone(),
        }
    }
}

/// Resource limits of a sandbox.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LimitsView {
    /// Memory limit in the form used by requests, for example `2g`.
    memory: String,
    /// Memory limit in bytes.
    memory_bytes: u64,
    /// CPU limit in cores.
    cpu: f64,
    /// Maximum number of processes and threads.
    pids: u32,
    /// Maximum number of bytes that the sandbox may write on top of its template.
    disk_bytes: u64,
}

/// Everything known about a sandbox, except secrets.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SandboxInfo {
    /// ID of the sandbox.
    pub(crate) sandbox_id: String,
    /// ID that the provider gave the sandbox. Null until the provider has created it.
    provider_sandbox_id: Option<String>,
    /// Owner of the sandbox.
    user_id: String,
    /// Second name that the owner chose, if any.
    alias: Option<String>,
    /// Project that the sandbox belongs to, if it was created with one.
    project: Option<String>,
    /// Current status of the sandbox.
    status: Status,
    /// Explanation of the status, for example why the sandbox failed or was paused. Null if there is nothing to
    /// explain.
    reason: Option<String>,
    /// Whether the processes of a `paused` sandbox have ended: its files are kept, its memory is not.
    is_stopped: bool,
    /// Name of the provider that runs the sandbox.
    provider: String,
    /// Operations that the provider supports for this sandbox. Null if this server does not have that provider.
    capabilities: Option<CapabilitiesView>,
    /// Template or snapshot that the sandbox was created from.
    template: String,
    /// Same as `template`.
    template_id: String,
    /// Resource limits of the sandbox.
    limits: LimitsView,
    /// Labels that were set when the sandbox was created.
    metadata: BTreeMap<String, String>,
    /// Ports named when the sandbox was created through the Docker-style API: port inside to port outside.
    ports: BTreeMap<String, String>,
    /// Ports that anyone may open through their preview URL.
    public_ports: Vec<u16>,
    /// Egress policy in force. Null if the stored policy cannot be read; the sandbox then reaches nothing.
    network: Option<NetworkView>,
    /// Secrets that the sandbox uses: environment variable to name of the secret.
    secrets: BTreeMap<String, String>,
    /// Mounted volumes: path inside the sandbox to name of the volume.
    volumes: BTreeMap<String, String>,
    /// Timeout in seconds: of idleness, or of the whole life, depending on `expiry`.
    timeout: i64,
    /// What happens when the timeout is over: `pause` or `delete`.
    #[schema(value_type = String)]
    timeout_action: TimeoutAction,
    /// How the timeout is counted: `idle` from the last activity, `fixed` from the start.
    #[schema(value_type = String)]
    expiry: Expiry,
    /// What the provider could not provide as requested, one sentence each; usually empty.
    limitations: Vec<String>,
    /// Old name of `limitations`. Will be removed in the next version.
    #[serde(rename = "lacks")]
    #[schema(deprecated)]
    deprecated_limitations: Vec<String>,
    /// URL of the tool server for MCP clients.
    mcp_url: String,
    /// URL of VS Code in the browser.
    vscode_url: String,
    /// Time at which the sandbox was created (RFC 3339).
    created_at: String,
    /// Time at which the sandbox last started running (RFC 3339).
    started_at: Option<String>,
    /// Time at which the sandbox last stopped running (RFC 3339).
    stopped_at: Option<String>,
    /// Time of the last activity (RFC 3339).
    last_activity_at: String,
    /// Time at which the timeout is over unless the sandbox is used before (RFC 3339). Null while it is not running.
    expires_at: Option<String>,
    /// Time at which the sandbox is deleted unless it is used before (RFC 3339). Null if the server keeps it.
    deletes_at: Option<String>,
    /// Time at which the sandbox was deleted (RFC 3339). Null unless it was.
    deleted_at: Option<String>,
}

impl SandboxInfo {
    pub(crate) fn new(call: &Call, sandbox: Sandbox) -> Self {
        let (service, links) = (call.service(), &call.links);
        // A policy that cannot be parsed must not make the whole list fail.
        let network = service.policy_of(&sandbox).ok().map(NetworkView::from);
        let capabilities = service.capabilities_of(&sandbox);
        let expires_ms = service.expires_ms(&sandbox);
        let deletes_ms = service.deletes_ms(&sandbox);
        let last_activity_ms = service.last_activity_ms(&sandbox);
        let limits = &sandbox.limits;
        Self {
            sandbox_id: sandbox.id.to_string(),
            limits: LimitsView {
                memory: Size(limits.memory_bytes).to_string(),
                memory_bytes: limits.memory_bytes,
                cpu: f64::from(limits.cpu_millis) / 1000.0,
                pids: limits.pids,
                disk_bytes: limits.disk_bytes,
            },
            provider_sandbox_id: sandbox.provider_id,
            user_id: sandbox.owner,
            alias: sandbox.alias,
            project: sandbox.project,
            status: sandbox.status.into(),
            is_stopped: sandbox.status == SandboxStatus::Stopped,
            reason: sandbox.reason,
            capabilities: capabilities.map(CapabilitiesView::from),
            provider: sandbox.provider,
            template_id: sandbox.template.clone(),
            template: sandbox.template,
            metadata: sandbox.metadata,
            ports: sandbox.ports,
            public_ports: sandbox.public_ports,
            network,
            secrets: sandbox.secrets,
            volumes: sandbox
                .mounts
                .into_iter()
                .map(|mount| (mount.path, mount.name))
                .collect(),
            timeout: sandbox.timeout_s,
            timeout_action: sandbox.timeout_action,
            expiry: sandbox.expiry,
            limitations: sandbox.limitations.clone(),
            deprecated_limitations: sandbox.limitations,
            mcp_url: links.mcp(&sandbox.id),
            vscode_url: links.vscode(&sandbox.id),
            created_at: iso(sandbox.created_ms),
            started_at: optional_iso(sandbox.started_ms),
            stopped_at: optional_iso(sandbox.stopped_ms),
            last_activity_at: iso(last_activity_ms),
            expires_at: optional_iso(expires_ms),
            deletes_at: optional_iso(deletes_ms),
            deleted_at: optional_iso(sandbox.deleted_ms),
        }
    }
}

/// What happens when the timeout of a sandbox is over: `pause` keeps it, `delete` removes it.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TimeoutActionWord {
    Pause,
    Delete,
}

impl From<TimeoutActionWord> for TimeoutAction {
    fn from(word: TimeoutActionWord) -> Self {
        match word {
            TimeoutActionWord::Pause => Self::Pause,
            TimeoutActionWord::Delete => Self::Delete,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_of_the_service_has_a_word() {
        let words: Vec<_> = SandboxStatus::ALL
            .into_iter()
            .map(|status| serde_json::to_value(Status::from(status)).unwrap())
            .collect();
        assert_eq!(
            words,
            [
                "initializing",
                "running",
                "paused",
                "paused",
                "error",
                "deleted",
                "deleted"
            ]
        );
    }
}
