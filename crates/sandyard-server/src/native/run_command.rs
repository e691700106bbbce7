//! `POST /sandboxes/run-command` = `/sandboxes/run-cmd`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::HeaderMap;
use sandyard_service::{CommandOutput, RunRequest};

use crate::listen::Shutdown;
use crate::model::command::{CommandText, MAX_OUTPUT, command_schema, run_request};
use crate::prelude::*;
use crate::stream::{self, Detach};
use crate::streamed_json::StreamedObject;

/// Request to run a command.
#[derive(Deserialize, ToSchema)]
pub(crate) struct RunCommand {
    /// Sandbox to run the command in.
    #[schema(schema_with = bounds::sandbox_id_schema)]
    sandbox_id: String,
    /// Shell command, or program and arguments.
    #[schema(schema_with = command_schema)]
    command: CommandText,
    /// Whether to return at once and leave the command running (default false).
    background: Option<bool>,
    /// Maximum run time in seconds (default 3600, set by `lifecycle.command_timeout`; unlimited in the background). The
    /// server then kills the command with all its children.
    #[schema(minimum = 0.001, maximum = 31536000)]
    timeout: Option<f64>,
    /// Working directory. Default: the user's home directory, or the operator's `sandbox.workdir`.
    #[schema(min_length = 1, max_length = 4096, pattern = r"^[^\u0000]+$")]
    cwd: Option<String>,
    /// Environment variables added to the sandbox's.
    #[schema(schema_with = bounds::env_schema)]
    env: Option<BTreeMap<String, String>>,
    /// User inside the sandbox who runs the command. Default: the sandbox's default user.
    #[schema(min_length = 1, max_length = 64, pattern = r"^[^\u0000]+$")]
    user: Option<String>,
    /// Maximum number of bytes kept of standard output and of standard error, each (default 1 MiB, at most 8 MiB).
    /// `truncated` tells whether the command wrote more.
    #[schema(inline)]
    max_output_bytes: Option<BoundedInt<1, { MAX_OUTPUT as i64 }>>,
}

impl RunCommand {
    fn into_request(self) -> ServiceResult<RunRequest> {
        let command = self.command.into_command()?;
        let request = run_request(command, self.cwd, self.env, self.user, self.timeout)?;
        Ok(RunRequest {
            max_output: self.max_output_bytes.map(|bytes| bytes.0 as usize),
            ..request
        })
    }
}

/// Result of a command. A command that fails is still a successful request: check `exit_code`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunReply {
    /// Always `true`; a failed request has an error status instead.
    success: bool,
    /// Standard output followed by standard error.
    output: String,
    /// Exit code of the command, or 128 + n if signal n ended it. Null while it runs in the background.
    exit_code: Option<i32>,
    /// Standard output of the command.
    stdout: String,
    /// Standard error of the command.
    stderr: String,
    /// Whether the command wrote more than `max_output_bytes`, so that output is missing.
    truncated: bool,
    /// Process ID of the command inside the sandbox.
    process_id: u32,
    /// Directory in which the command started; null if the provider does not report it.
    cwd: Option<String>,
    /// Summary of the result for people.
    message: String,
}

/// Writes a [`RunReply`] without a second copy of the output in memory.
fn reply(output: CommandOutput) -> Response {
    let message = match output.exit_code {
        0 => "Command executed successfully".to_owned(),
        code => format!("Command ended with exit code {code}"),
    };
    let (stdout, stderr) = (Arc::new(output.stdout), Arc::new(output.stderr));
    StreamedObject::default()
        .field("success", true)
        .text("output", &[&stdout, &stderr])
        .field("exit_code", output.exit_code)
        .text("stdout", &[&stdout])
        .text("stderr", &[&stderr])
        .field("truncated", output.is_truncated)
        .field("process_id", output.pid)
        .field("cwd", output.cwd)
        .field("message", message)
        .into_response(output.memory)
}

/// Run a command
///
/// Runs a command in a sandbox and returns its output and exit code when it ends. A non-zero exit code is not an error:
/// the response is 200 and `exit_code` tells. If the command exceeds `timeout`, it is killed with all its children and
/// the response is 408 with the output so far.
///
/// With `background: true` the response comes at once and the command keeps running. With the header `Accept:
/// text/event-stream` the output is streamed, as by `run-command-stream`.
#[utoipa::path(
    post, path = "/sandboxes/run-command", tag = "commands", request_body = RunCommand,
    responses((status = 200, description = "Command finished, or was started in the background.", content(
        (RunReply = "application/json"), (String = "text/event-stream"))))
)]
pub(crate) async fn run_command(
    call: Call,
    shutdown: Shutdown,
    headers: HeaderMap,
    Body(request): Body<RunCommand>,
) -> ApiResult<Response> {
    let name = sandbox_name(&request.sandbox_id)?.to_owned();
    let is_background = request.background.unwrap_or(false);
    let request = request.into_request()?;
    let live = call.live(&name).await?;
    if stream::wants_events(&headers) {
        let detach = if is_background {
            Detach::Yes
        } else {
            Detach::No
        };
        return stream::command_events(&call, live, request, detach, shutdown).await;
    }
    if !is_background {
        let service = call.service();
        let output = service.run_command(&call.caller, &live, request).await?;
        return Ok(reply(output));
    }
    let service = call.service();
    let (pid, cwd) = service.start_command(&call.caller, &live, request).await?;
    Ok(Json(RunReply {
        success: true,
        output: String::new(),
        exit_code: None,
        stdout: String::new(),
        stderr: String::new(),
        truncated: false,
        process_id: pid,
        cwd,
        message: format!("Command runs in the background as process {pid}"),
    })
    .into_response())
}
