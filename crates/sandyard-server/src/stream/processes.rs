//! The commands that run in a sandbox.

use axum::extract::RawPathParams;
use sandyard_agent_client::wire::process::{ProcessInfo, ProcessSelector};

use super::control::SignalName;
use crate::model::Done;
use crate::prelude::*;

/// Running command. Its environment is left out, since it may hold secrets.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Process {
    /// Process ID inside the sandbox.
    pid: u32,
    /// Program that runs.
    command: String,
    /// Arguments of the program.
    args: Vec<String>,
    /// Working directory, if one was requested.
    cwd: Option<String>,
    /// Label that the client gave the command, if any.
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

/// Running commands of a sandbox.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Processes {
    /// Always `true`; a failed request has an error status instead.
    success: bool,
    /// Running commands.
    processes: Vec<Process>,
}

/// List running commands
///
/// Returns the commands that were started through the API and still run.
#[utoipa::path(
    get, path = "/sandboxes/{id}/processes", tag = "commands", params(SandboxName),
    responses((status = 200, description = "Running commands returned.", body = Processes))
)]
pub(super) async fn list_processes(call: Call, name: SandboxName) -> Reply<Processes> {
    let live = call.live(&name.id).await?;
    let processes = live.agent.list().await?;
    Ok(Json(Processes {
        success: true,
        processes: processes.into_iter().map(Process::from).collect(),
    }))
}

/// The process id in a path.
pub(super) fn pid_of(path_params: &RawPathParams) -> ServiceResult<u32> {
    let pid = path_params.iter().find(|(name, _)| *name == "pid");
    let pid = pid.and_then(|(_, pid)| pid.parse::<u32>().ok());
    pid.ok_or_else(no_process)
}

pub(super) fn no_process() -> ServiceError {
    ServiceError::new(ErrorKind::NotFound, "no such process")
        .hint("GET /sandboxes/{id}/processes lists those that run")
}

/// The signal to send.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct KillQuery {
    /// Signal to send, as name or number: `SIGTERM`, `INT`, `9` (default `SIGKILL`, which ends the children of the
    /// command too).
    signal: Option<String>,
}

/// Kill a command
///
/// Sends a signal to a command, `SIGKILL` by default.
#[utoipa::path(
    post, path = "/sandboxes/{id}/processes/{pid}/kill", tag = "commands",
    params(("pid" = u32, Path, description = "Process ID inside the sandbox."), SandboxName, KillQuery),
    responses((status = 200, description = "Signal sent.", body = Done))
)]
pub(super) async fn kill_process(
    call: Call,
    name: SandboxName,
    path_params: RawPathParams,
    Query(query): Query<KillQuery>,
) -> Reply<Done> {
    let pid = pid_of(&path_params)?;
    let signal = SignalName::Name(query.signal.unwrap_or_else(|| "KILL".to_owned())).to_wire()?;
    let live = call.live(&name.id).await?;
    match live.agent.signal(ProcessSelector::Pid(pid), signal).await {
        Ok(()) => {
            let sent = format!("signal {} sent to process {pid}", signal.0);
            Ok(Json(Done::new(sent)))
        }
        Err(error) if error.is_not_found() => Err(no_process().source(error).into()),
        Err(error) => Err(error.into()),
    }
}
