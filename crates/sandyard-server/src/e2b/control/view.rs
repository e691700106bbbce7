//! Sandboxes as this dialect shows them.

use std::collections::BTreeMap;

use sandyard_core::{SandboxStatus, Scope};
use sandyard_service::{Sandbox, Snapshot, TimeoutAction};

use super::ENVD_VERSION;
use super::network::NetworkView;
use super::template_name::{self, BASE};
use crate::app::App;
use crate::prelude::*;

/// Id of the client; old SDKs append it to the id of the sandbox.
const CLIENT_ID: &str = "sandyard";

/// State of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = E2bState)]
pub(crate) enum State {
    /// The sandbox runs.
    Running,
    /// The sandbox is paused or stopped.
    Paused,
}

impl From<SandboxStatus> for State {
    fn from(status: SandboxStatus) -> Self {
        match status {
            SandboxStatus::Creating | SandboxStatus::Running => Self::Running,
            SandboxStatus::Paused
            | SandboxStatus::Stopped
            | SandboxStatus::Error
            | SandboxStatus::Deleting
            | SandboxStatus::Deleted => Self::Paused,
        }
    }
}

/// Sandbox, with the tokens to use it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = E2bSandbox)]
pub(crate) struct SandboxView {
    /// Template that the sandbox was created from.
    #[serde(rename = "templateID")]
    template_id: String,
    /// ID of the sandbox.
    #[serde(rename = "sandboxID")]
    pub(crate) sandbox_id: String,
    /// Constant that old clients expect behind the sandbox ID.
    #[serde(rename = "clientID")]
    client_id: &'static str,
    /// Version of E2B's agent that the sandbox's agent is compatible with.
    envd_version: &'static str,
    /// Name of the template.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    alias: Option<String>,
    /// Token for the files and commands of the sandbox. Absent for callers without the scope `use`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    envd_access_token: Option<String>,
    /// Token for ports that are not public. Null for callers without the scope `use`.
    traffic_access_token: Option<String>,
    /// Domain of sandbox ports: a port is reached at `{port}-{id}.` followed by this.
    domain: String,
}

impl SandboxView {
    pub(crate) fn new(call: &Call, sandbox: &Sandbox) -> ServiceResult<Self> {
        let policy = call.service().policy_of(sandbox)?;
        let is_public = policy.allow_public_traffic == Some(true);
        // Both tokens give the rights of the scope `use`.
        let may_use = call.caller.has(Scope::Use);
        Ok(Self {
            template_id: template_id(&call.app, sandbox),
            sandbox_id: sandbox.id.to_string(),
            client_id: CLIENT_ID,
            envd_version: ENVD_VERSION,
            alias: Names::default().of(&call.app, sandbox),
            envd_access_token: may_use.then(|| sandbox.access_token.clone()),
            traffic_access_token: (may_use && !is_public)
                .then(|| call.app.auth().traffic_token(&sandbox.id)),
            domain: call.app.settings().e2b_domain.clone(),
        })
    }
}

/// Volume mounted into a sandbox.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = E2bVolumeMountView)]
pub(crate) struct MountView {
    /// Name of the volume.
    name: String,
    /// Absolute path inside the sandbox.
    path: String,
}

/// Sandbox in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = E2bListedSandbox)]
pub(crate) struct ListedView {
    /// Template that the sandbox was created from.
    #[serde(rename = "templateID")]
    template_id: String,
    /// ID of the sandbox.
    #[serde(rename = "sandboxID")]
    sandbox_id: String,
    /// Constant that old clients expect behind the sandbox ID.
    #[serde(rename = "clientID")]
    client_id: &'static str,
    /// Time at which the sandbox was created (RFC 3339). Lists are sorted by it.
    started_at: String,
    /// Time at which the lifetime is over; for a paused sandbox, the time of the pause (RFC 3339).
    end_at: String,
    /// CPU limit in cores, rounded up.
    cpu_count: u32,
    /// Memory limit in MiB.
    #[serde(rename = "memoryMB")]
    memory_mb: u64,
    /// Disk limit in MiB.
    #[serde(rename = "diskSizeMB")]
    disk_size_mb: u64,
    /// Whether the sandbox runs or is paused.
    state: State,
    /// Version of E2B's agent that the sandbox's agent is compatible with.
    envd_version: &'static str,
    /// Name of the template.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    alias: Option<String>,
    /// Labels that were set when the sandbox was created.
    metadata: BTreeMap<String, String>,
    /// Mounted volumes.
    volume_mounts: Vec<MountView>,
}

impl ListedView {
    pub(crate) fn new(app: &App, sandbox: &Sandbox, names: &Names) -> Self {
        let limits = &sandbox.limits;
        Self {
            template_id: template_id(app, sandbox),
            sandbox_id: sandbox.id.to_string(),
            client_id: CLIENT_ID,
            started_at: iso(sandbox.created_ms),
            end_at: iso(end_ms(app, sandbox)),
            cpu_count: cpu_count(sandbox),
            memory_mb: limits.memory_bytes >> 20,
            disk_size_mb: limits.disk_bytes >> 20,
            state: sandbox.status.into(),
            envd_version: ENVD_VERSION,
            alias: names.of(app, sandbox),
            metadata: sandbox.metadata.clone(),
            volume_mounts: sandbox
                .mounts
                .iter()
                .map(|mount| MountView {
                    name: mount.name.clone(),
                    path: mount.path.clone(),
                })
                .collect(),
        }
    }
}

/// What happens when the lifetime of a sandbox is over.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = E2bLifecycle)]
pub(crate) struct LifecycleView {
    /// Whether a request wakes the sandbox when it is paused.
    auto_resume: bool,
    /// What happens at the end of its time: `pause` or `kill`.
    on_timeout: &'static str,
}

/// Everything that E2B clients can know about a sandbox.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = E2bSandboxDetail)]
pub(crate) struct DetailView {
    #[serde(flatten)]
    summary: ListedView,
    /// Token for the files and commands of the sandbox. Absent for callers without the scope `use`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    envd_access_token: Option<String>,
    /// Domain of sandbox ports: a port is reached at `{port}-{id}.` followed by this.
    domain: String,
    /// Whether the sandbox may reach hosts that no entry of `network` names.
    allow_internet_access: bool,
    /// Egress policy in force.
    network: NetworkView,
    /// What happens when the lifetime is over.
    lifecycle: LifecycleView,
    /// What the pause kept: `full` (memory and files) or `filesystem`. Absent unless the sandbox is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pause_mode: Option<&'static str>,
}

impl DetailView {
    pub(crate) fn new(call: &Call, sandbox: &Sandbox, names: &Names) -> ServiceResult<Self> {
        let policy = call.service().policy_of(sandbox)?;
        // The token gives root rights inside, which is more than the scope `read`.
        let may_use = call.caller.has(Scope::Use);
        Ok(Self {
            summary: ListedView::new(&call.app, sandbox, names),
            envd_access_token: may_use.then(|| sandbox.access_token.clone()),
            domain: call.app.settings().e2b_domain.clone(),
            allow_internet_access: policy.allow_internet_access,
            network: NetworkView::from(policy),
            lifecycle: LifecycleView {
                auto_resume: sandbox.is_auto_resumed,
                on_timeout: match sandbox.timeout_action {
                    TimeoutAction::Delete => "kill",
                    TimeoutAction::Pause | TimeoutAction::Stop => "pause",
                },
            },
            pause_mode: match sandbox.status {
                SandboxStatus::Paused => Some("full"),
                SandboxStatus::Stopped => Some("filesystem"),
                _ => None,
            },
        })
    }
}

/// Number of cores, rounded up: E2B has whole ones.
pub(crate) fn cpu_count(sandbox: &Sandbox) -> u32 {
    sandbox.limits.cpu_millis.div_ceil(1000).max(1)
}

/// End of a sandbox's time.
fn end_ms(app: &App, sandbox: &Sandbox) -> i64 {
    app.service()
        .expires_ms(sandbox)
        .or(sandbox.stopped_ms)
        .or(sandbox.fixed_end_ms)
        .unwrap_or(sandbox.last_activity_ms)
}

/// Names of snapshots, by id.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeMap<String, String>);

impl Names {
    /// Reads them, if any of these sandboxes was created from a snapshot.
    pub(crate) async fn find(call: &Call, sandboxes: &[Sandbox]) -> ServiceResult<Self> {
        if !sandboxes.iter().any(is_from_snapshot) {
            return Ok(Self::default());
        }
        let snapshots = call.service().snapshots(&call.caller, None).await?;
        let named = |snapshot: Snapshot| Some((snapshot.name, snapshot.alias?));
        Ok(Self(snapshots.into_iter().filter_map(named).collect()))
    }

    /// Name of a sandbox's template; none if it has only an id.
    fn of(&self, app: &App, sandbox: &Sandbox) -> Option<String> {
        if is_from_snapshot(sandbox) {
            return self.0.get(&sandbox.template).cloned();
        }
        let (provider, template) = (&sandbox.provider, &sandbox.template);
        let default = template_name::default_name_of(app, provider);
        let name = match default.as_ref() == Some(template) {
            true => BASE,
            false => template,
        };
        Some(template_name::qualified_name(app, provider, name))
    }
}

/// Id to create a similar sandbox from.
fn template_id(app: &App, sandbox: &Sandbox) -> String {
    match is_from_snapshot(sandbox) {
        // The id of a snapshot determines its provider.
        true => sandbox.template.clone(),
        false => template_name::qualified_name(app, &sandbox.provider, &sandbox.template),
    }
}

fn is_from_snapshot(sandbox: &Sandbox) -> bool {
    sandbox.template.starts_with("snapshot-")
}
