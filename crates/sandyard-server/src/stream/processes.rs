//! What runs in a sandbox.

use axum::Json;
use axum::extract::{RawPathParams, State};
use sandyard_agent_client::wire::process::{ProcessInfo, ProcessSelector};
use sandyard_core::ErrorKind;
use sandyard_service::ServiceError;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::control::SignalName;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Query, SandboxName};
use crate::need::Who;

/// A command that runs. Its variables are left out: they may be secrets.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Process {
    pid: u32,
    command: String,
    args: Vec<String>,
    cwd: Option<String>,
    tag: Option<String>,
}

impl From<ProcessInfo> for Process {
    fn from(info: ProcessInfo) -> Self {
        Self {
            pid: info.pid,
            command: info.config.cmd,
            args: info.config.args,
            cwd: info.config.cwd,
            tag: info.tag,
        }
    }
}

/// The commands that run.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Processes {
    success: bool,
    processes: Vec<Process>,
}

/// Lists the commands that run in a sandbox.
#[utoipa::path(get, path = "/sandboxes/{id}/processes", operation_id = "list_processes", tag = "commands",
    params(SandboxName),
    responses(
        (status = 200, description = "Commands", body = Processes)))]
pub(super) async fn list_processes(
    State(app): State<App>,
    Who(caller): Who,
    name: SandboxName,
) -> Result<Json<Processes>, ApiError> {
    let live = app.service().live(&caller, &name.id).await?;
    let processes = live.agent.list().await?;
    Ok(Json(Processes {
        success: true,
        processes: processes.into_iter().map(Process::from).collect(),
    }))
}

/// The process that a path names.
pub(super) fn pid_of(words: &RawPathParams) -> Result<u32, ServiceError> {
    let pid = words.iter().find(|(name, _)| *name == "pid");
    let pid = pid.and_then(|(_, pid)| pid.parse::<u32>().ok());
    pid.ok_or_else(no_process)
}

pub(super) fn no_process() -> ServiceError {
    ServiceError::new(ErrorKind::NotFound, "no such process")
        .hint("GET /sandboxes/{id}/processes lists those that run")
}

/// With which signal.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct KillQuery {
    /// `SIGTERM`, `INT`, `9`, …; `SIGKILL` if not said, which ends all its children too.
    signal: Option<String>,
}

/// That a signal was sent.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Killed {
    success: bool,
    message: String,
}

/// Ends a command, or sends it another signal.
#[utoipa::path(post, path = "/sandboxes/{id}/processes/{pid}/kill", operation_id = "kill_process", tag = "commands",
    params(("pid" = u32, Path, description = "The process"), SandboxName, KillQuery),
    responses(
        (status = 200, description = "Done", body = Killed)))]
pub(super) async fn kill_process(
    State(app): State<App>,
    Who(caller): Who,
    name: SandboxName,
    words: RawPathParams,
    Query(query): Query<KillQuery>,
) -> Result<Json<Killed>, ApiError> {
    let pid = pid_of(&words)?;
    let signal = SignalName::Name(query.signal.unwrap_or_else(|| "KILL".to_owned())).to_wire()?;
    let live = app.service().live(&caller, &name.id).await?;
    match live.agent.signal(ProcessSelector::Pid(pid), signal).await {
        Ok(()) => Ok(Json(Killed {
            success: true,
            message: format!("signal {} sent to process {pid}", signal.0),
        })),
        Err(error) if error.is_not_found() => Err(no_process().source(error).into()),
        Err(error) => Err(error.into()),
    }
}
