//! `POST /api/sandboxes/{id}/execute`.

use std::sync::Arc;

use sandyard_core::SandboxStatus;
use sandyard_service::{Command, RunRequest};

use super::workspace;
use crate::model::command::{MAX_OUTPUT, argv, argv_schema};
use crate::prelude::*;
use crate::streamed_json::StreamedObject;

/// Request to run a command in the Docker style.
#[derive(Deserialize, ToSchema)]
pub(crate) struct Execute {
    /// Program and arguments.
    #[schema(schema_with = argv_schema)]
    command: Vec<String>,
    /// Working directory (default `/workspace`, or the operator's `sandbox.workdir`).
    #[schema(min_length = 1, max_length = 4096, pattern = r"^[^\u0000]+$")]
    workdir: Option<String>,
}

/// Result of a command.
#[expect(
    dead_code,
    reason = "describes an answer that is written piece by piece"
)]
#[derive(ToSchema)]
pub(crate) struct ExecuteReply {
    /// Exit code of the command, or 128 + n if signal n ended it.
    exit_code: i32,
    /// Standard output of the command.
    stdout: String,
    /// Standard error of the command.
    stderr: String,
}

/// Run a command in the Docker style
///
/// Runs a program in `/workspace` and returns its output and exit code when it ends. A non-zero exit code is not an
/// error.
#[utoipa::path(
    post, path = "/api/sandboxes/{id}/execute", tag = "docker", params(SandboxName), request_body = Execute,
    responses((status = 200, description = "Command finished.", body = ExecuteReply))
)]
pub(crate) async fn execute_in_container(
    call: Call,
    name: SandboxName,
    Body(request): Body<Execute>,
) -> ApiResult<Response> {
    let command = argv(request.command)?;
    let workspace = workspace::path(&call);
    let workdir = request.workdir.unwrap_or_else(|| workspace.to_owned());
    bounds::path("workdir", &workdir)?;
    let sandbox = call.inspect(&name.id).await?;
    // In this dialect a stopped sandbox stays stopped; a paused one wakes as everywhere.
    if sandbox.status == SandboxStatus::Stopped {
        return Err(ApiError::new(
            ErrorKind::BadRequest,
            format!("sandbox `{}` is stopped", sandbox.id),
        )
        .hint("POST /api/sandboxes/{id}/start starts it"));
    }
    let live = call.live(sandbox.id.as_str()).await?;
    if workdir.starts_with(workspace) {
        workspace::ensure(&call, &live).await?;
    }
    let run_request = RunRequest {
        cwd: Some(workdir),
        // The response of this dialect has no field for truncation.
        max_output: Some(MAX_OUTPUT),
        ..RunRequest::new(Command::Argv(command))
    };
    let service = call.service();
    let output = service
        .run_command(&call.caller, &live, run_request)
        .await?;
    let (stdout, stderr) = (Arc::new(output.stdout), Arc::new(output.stderr));
    Ok(StreamedObject::default()
        .field("exit_code", output.exit_code)
        .text("stdout", &[&stdout])
        .text("stderr", &[&stderr])
        .into_response(output.memory))
}
