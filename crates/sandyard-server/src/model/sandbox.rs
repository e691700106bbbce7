//! A sandbox as the native dialect, its envelope and the MCP tools show it.

use std::collections::BTreeMap;

use sandyard_core::SandboxStatus;
use sandyard_core::size::Size;
use sandyard_service::{Expiry, Sandbox, Service, TimeoutAction};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::network::NetworkView;
use super::provider::CapabilitiesView;
use crate::links::Links;
use crate::time::{iso, optional_iso};

/// Where a sandbox stands, in this contract's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SandboxStatus)]
pub(crate) enum Status {
    /// It is being made.
    Initializing,
    /// It runs.
    Running,
    /// It does not run, and the next request wakes it.
    Paused,
    /// It failed.
    Error,
    /// It is gone, or going.
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
    /// Which of the service's statuses look like this one.
    pub(crate) fn statuses(self) -> Vec<SandboxStatus> {
        let looks_alike = |status: &SandboxStatus| Self::from(*status) == self;
        SandboxStatus::ALL.into_iter().filter(looks_alike).collect()
    }
}

/// The answer to what makes or wakes a sandbox.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SandboxReply {
    /// Always true; failures are HTTP errors.
    pub(crate) success: bool,
    /// Its name.
    pub(crate) sandbox_id: String,
    /// Its provider's name for it.
    pub(crate) provider_sandbox_id: Option<String>,
    pub(crate) status: Status,
    /// Where its tool server is.
    pub(crate) mcp_url: String,
    /// Where its VS Code is.
    pub(crate) vscode_url: String,
    /// What happened, for people.
    pub(crate) message: String,
}

impl SandboxReply {
    pub(crate) fn new(sandbox: &Sandbox, links: &Links, message: &str) -> Self {
        Self {
            success: true,
            sandbox_id: sandbox.id.to_string(),
            provider_sandbox_id: sandbox.provider_id.clone(),
            status: sandbox.status.into(),
            mcp_url: links.mcp(&sandbox.id),
            vscode_url: links.vscode(&sandbox.id),
            message: message.to_owned(),
        }
    }
}

/// Where a sandbox stands.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatusReply {
    /// Its name.
    pub(crate) sandbox_id: String,
    pub(crate) status: Status,
    /// Its provider's name for it.
    pub(crate) provider_sandbox_id: Option<String>,
    /// Why, when that is not plain.
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

/// How much a sandbox may use.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LimitsView {
    /// As it is asked for: `2g`.
    memory: String,
    memory_bytes: u64,
    /// Cores.
    cpu: f64,
    /// Processes and threads.
    pids: u32,
    disk_bytes: u64,
}

/// All there is to know about a sandbox, secrets left out.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SandboxInfo {
    /// Its name.
    pub(crate) sandbox_id: String,
    /// Its provider's name for it.
    provider_sandbox_id: Option<String>,
    /// Whose it is.
    user_id: String,
    /// Another name its owner gave it.
    alias: Option<String>,
    /// What it is for.
    project: Option<String>,
    status: Status,
    /// Why, when that is not plain.
    reason: Option<String>,
    /// Which kind of provider runs it.
    provider: String,
    /// What can be done with it there. None: its provider is none of this server's.
    capabilities: Option<CapabilitiesView>,
    /// What it was made from.
    template: String,
    /// The same as `template`.
    template_id: String,
    limits: LimitsView,
    /// Its maker's own words.
    metadata: BTreeMap<String, String>,
    /// Ports its maker named.
    ports: BTreeMap<String, String>,
    /// Ports anybody may open.
    public_ports: Vec<u16>,
    /// What it may reach. None: what is kept of it cannot be read, and it reaches nothing.
    network: Option<NetworkView>,
    /// Secrets it uses without seeing them: by variable, the secret's name.
    secrets: BTreeMap<String, String>,
    /// Volumes in it: by path inside, the volume's name.
    volumes: BTreeMap<String, String>,
    /// Seconds it lives without activity, or at all.
    timeout: i64,
    /// What happens then: `pause` or `delete`.
    timeout_action: &'static str,
    /// From when on that time is counted: `idle` or `fixed`.
    expiry: &'static str,
    /// What its provider could not give it.
    lacks: Vec<String>,
    /// Where its tool server is.
    mcp_url: String,
    /// Where its VS Code is.
    vscode_url: String,
    created_at: String,
    started_at: Option<String>,
    stopped_at: Option<String>,
    last_activity_at: String,
    expires_at: Option<String>,
    deleted_at: Option<String>,
}

impl SandboxInfo {
    pub(crate) fn new(service: &Service, links: &Links, sandbox: Sandbox) -> Self {
        // One row that cannot be read must not hide all others.
        let network = service.policy_of(&sandbox).ok().map(NetworkView::from);
        let capabilities = service.capabilities_of(&sandbox);
        let expires_ms = service.expires_ms(&sandbox);
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
            timeout_action: action_word(sandbox.timeout_action),
            expiry: match sandbox.expiry {
                Expiry::Idle => "idle",
                Expiry::Fixed => "fixed",
            },
            lacks: sandbox.limitations,
            mcp_url: links.mcp(&sandbox.id),
            vscode_url: links.vscode(&sandbox.id),
            created_at: iso(sandbox.created_ms),
            started_at: optional_iso(sandbox.started_ms),
            stopped_at: optional_iso(sandbox.stopped_ms),
            last_activity_at: iso(last_activity_ms),
            expires_at: optional_iso(expires_ms),
            deleted_at: optional_iso(sandbox.deleted_ms),
        }
    }
}

fn action_word(action: TimeoutAction) -> &'static str {
    match action {
        TimeoutAction::Pause => "pause",
        TimeoutAction::Stop => "stop",
        TimeoutAction::Delete => "delete",
    }
}

/// What shall happen when a sandbox's time is over.
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
