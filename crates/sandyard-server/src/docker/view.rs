//! Sandboxes as this dialect shows them.

use std::collections::BTreeMap;

use super::workspace;
use crate::prelude::*;

use sandyard_core::SandboxStatus;
use sandyard_core::size::Size;
use sandyard_service::Sandbox;

/// Status of a sandbox in the Docker style: `stopped` covers paused sandboxes too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ContainerStatus)]
pub(crate) enum Status {
    /// The sandbox is being created.
    Creating,
    /// It runs.
    Running,
    /// It does not run.
    Stopped,
    /// The sandbox failed or is being deleted.
    Error,
}

impl From<SandboxStatus> for Status {
    fn from(status: SandboxStatus) -> Self {
        match status {
            SandboxStatus::Creating => Self::Creating,
            SandboxStatus::Running => Self::Running,
            SandboxStatus::Paused | SandboxStatus::Stopped => Self::Stopped,
            SandboxStatus::Error | SandboxStatus::Deleting | SandboxStatus::Deleted => Self::Error,
        }
    }
}

/// Resource limits in the form used by requests.
#[derive(Serialize, ToSchema)]
pub(crate) struct ResourceLimits {
    /// Memory limit, for example `2g`.
    memory: String,
    /// CPU limit in cores, for example `2.0`.
    cpu: String,
}

/// Sandbox in the Docker style.
#[derive(Serialize, ToSchema)]
pub(crate) struct Container {
    /// ID of the sandbox.
    sandbox_id: String,
    /// ID that the provider gave the sandbox. Null until the provider has created it.
    container_id: Option<String>,
    /// Name of the project that the sandbox is for.
    project_name: Option<String>,
    /// Template that the sandbox was created from.
    image: String,
    /// Name of the provider that runs the sandbox.
    provider: String,
    /// Current status of the sandbox.
    status: Status,
    /// Time at which the sandbox was created (RFC 3339).
    created_at: String,
    /// Directory inside the sandbox for the files of the project.
    workspace_path: String,
    /// Ports named in the request: port inside to port outside.
    ports: BTreeMap<String, String>,
    /// Resource limits of the sandbox.
    resource_limits: ResourceLimits,
}

impl Container {
    pub(crate) fn new(call: &Call, sandbox: Sandbox) -> Self {
        Self {
            sandbox_id: sandbox.id.to_string(),
            container_id: sandbox.provider_id,
            project_name: sandbox.project,
            image: sandbox.template,
            provider: sandbox.provider,
            status: sandbox.status.into(),
            created_at: iso(sandbox.created_ms),
            workspace_path: workspace::path(call).to_owned(),
            ports: sandbox.ports,
            resource_limits: ResourceLimits {
                memory: Size(sandbox.limits.memory_bytes).to_string(),
                cpu: cores(sandbox.limits.cpu_millis),
            },
        }
    }
}

/// Formats cores with at least one decimal digit.
fn cores(millis: u32) -> String {
    let text = format!("{}.{:03}", millis / 1000, millis % 1000);
    let short = text.trim_end_matches('0');
    match short.strip_suffix('.') {
        Some(whole) => format!("{whole}.0"),
        None => short.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_returned_as_requested() {
        assert_eq!(
            [1000, 1500, 20, 64_000].map(cores),
            ["1.0", "1.5", "0.02", "64.0"]
        );
    }
}
