//! A sandbox as this dialect shows it.

use std::collections::BTreeMap;

use sandyard_core::SandboxStatus;
use sandyard_core::size::Size;
use sandyard_service::Sandbox;
use serde::Serialize;
use utoipa::ToSchema;

use crate::time::iso;

/// Where files of a project are.
pub(crate) const WORKSPACE: &str = "/workspace";

/// Where a sandbox stands, in this contract's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ContainerStatus)]
pub(crate) enum Status {
    /// It is being made.
    Creating,
    /// It runs.
    Running,
    /// It does not run.
    Stopped,
    /// It failed, or is going away.
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

/// How much it may use, as it is asked for.
#[derive(Serialize, ToSchema)]
pub(crate) struct ResourceLimits {
    /// Like `2g`.
    memory: String,
    /// Cores, like `2.0`.
    cpu: String,
}

/// A sandbox.
#[derive(Serialize, ToSchema)]
pub(crate) struct Container {
    /// Its name.
    sandbox_id: String,
    /// Its provider's name for it.
    container_id: Option<String>,
    project_name: Option<String>,
    /// What it was made from.
    image: String,
    /// Which provider runs it.
    provider: String,
    status: Status,
    created_at: String,
    /// Where files of the project are.
    workspace_path: &'static str,
    /// Ports its maker named: inside, and outside.
    ports: BTreeMap<String, String>,
    resource_limits: ResourceLimits,
}

impl From<Sandbox> for Container {
    fn from(sandbox: Sandbox) -> Self {
        Self {
            sandbox_id: sandbox.id.to_string(),
            container_id: sandbox.provider_id,
            project_name: sandbox.project,
            image: sandbox.template,
            provider: sandbox.provider,
            status: sandbox.status.into(),
            created_at: iso(sandbox.created_ms),
            workspace_path: WORKSPACE,
            ports: sandbox.ports,
            resource_limits: ResourceLimits {
                memory: Size(sandbox.limits.memory_bytes).to_string(),
                cpu: cores(sandbox.limits.cpu_millis),
            },
        }
    }
}

/// Cores with at least one digit after the point.
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
    fn cores_are_told_as_they_are_asked_for() {
        assert_eq!(
            [1000, 1500, 20, 64_000].map(cores),
            ["1.0", "1.5", "0.02", "64.0"]
        );
    }
}
