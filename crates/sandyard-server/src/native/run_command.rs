//! `POST /sandboxes/run-command` = `/sandboxes/run-cmd`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use sandyard_service::{CommandOutput, RunRequest, ServiceError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Authenticated;
use crate::app::App;
use crate::bounds::{self, Whole};
use crate::error::ApiError;
use crate::extract::{Body, sandbox_name};
use crate::listen::Shutdown;
use crate::model::command::{CommandWords, MAX_OUTPUT, command_schema};
use crate::stream::{self, Detach};
use crate::streamed_json::StreamedObject;

/// A command to be run.
#[derive(Deserialize, ToSchema)]
pub(crate) struct RunCommand {
    /// The sandbox: its id, its provider's id or its alias.
    #[schema(schema_with = bounds::sandbox_id_schema)]
    sandbox_id: String,
    #[schema(schema_with = command_schema)]
    command: CommandWords,
    /// Leaves it running and answers at once.
    background: Option<bool>,
    /// Seconds it may take; then it is killed with all its children, and the 408 response holds what it wrote until then.
    #[schema(minimum = 0.001, maximum = 31536000)]
    timeout: Option<f64>,
    /// Where to run it; the user's home if it is left out.
    #[schema(min_length = 1, max_length = 4096, pattern = r"^[^\u0000]+$")]
    cwd: Option<String>,
    /// Variables on top of the sandbox's.
    #[schema(schema_with = bounds::env_schema)]
    env: Option<BTreeMap<String, String>>,
    /// Who runs it; the sandbox's user if it is left out.
    #[schema(min_length = 1, max_length = 64, pattern = r"^[^\u0000]+$")]
    user: Option<String>,
    /// Bytes kept of its standard output and of its standard error, each (default 1 MiB, at most 8 MiB). `truncated` says whether
    /// more was written.
    #[schema(inline)]
    max_output_bytes: Option<Whole<1, { MAX_OUTPUT as i64 }>>,
}

impl RunCommand {
    fn into_request(self) -> Result<RunRequest, ServiceError> {
        bounds::optional_text("cwd", self.cwd.as_deref(), 1, bounds::MAX_PATH)?;
        bounds::optional_text("user", self.user.as_deref(), 1, 64)?;
        let env = self.env.unwrap_or_default();
        bounds::env("env", &env)?;
        if let Some(seconds) = self.timeout {
            bounds::command_seconds(seconds)?;
        }
        Ok(RunRequest {
            cwd: self.cwd,
            env,
            user: self.user,
            timeout: self.timeout.map(Duration::from_secs_f64),
            max_output: self.max_output_bytes.map(|bytes| bytes.0 as usize),
            ..RunRequest::new(self.command.into_command()?)
        })
    }
}

/// What a command wrote and how it ended. A command that fails is a success of ours: look at `exit_code`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunReply {
    /// Always true; failures are HTTP errors.
    success: bool,
    /// What it wrote: standard output, then standard error.
    output: String,
    /// How it ended; 128 + n after signal n. None while it runs in the background.
    exit_code: Option<i32>,
    stdout: String,
    stderr: String,
    /// Whether more was written than is told.
    truncated: bool,
    /// Its process id inside.
    process_id: u32,
    /// What happened, for people.
    message: String,
}

/// A [`RunReply`] with the output in memory once.
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
        .field("message", message)
        .into_response(output.memory)
}

/// Runs a command, to its end or in the background. A non-zero exit is no error.
///
/// A client that accepts `text/event-stream` gets the output as it comes, as from `run-command-stream`.
#[utoipa::path(
    post, path = "/sandboxes/run-command", operation_id = "run_command", tag = "commands",
    request_body = RunCommand,
    responses((status = 200, description = "It ran, or runs.", content(
        (RunReply = "application/json"), (String = "text/event-stream"))))
)]
pub(crate) async fn run_command(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    shutdown: Shutdown,
    headers: HeaderMap,
    Body(request): Body<RunCommand>,
) -> Result<Response, ApiError> {
    let name = sandbox_name(&request.sandbox_id)?.to_owned();
    let is_background = request.background.unwrap_or(false);
    let request = request.into_request()?;
    let live = app.service().live(&caller, &name).await?;
    if stream::wants_events(&headers) {
        let detach = if is_background {
            Detach::Yes
        } else {
            Detach::No
        };
        return stream::command_events(&app, &caller, live, request, detach, shutdown).await;
    }
    if !is_background {
        let output = app.service().run_command(&caller, &live, request).await?;
        return Ok(reply(output));
    }
    let pid = app.service().start_command(&caller, &live, request).await?;
    Ok(Json(RunReply {
        success: true,
        output: String::new(),
        exit_code: None,
        stdout: String::new(),
        stderr: String::new(),
        truncated: false,
        process_id: pid,
        message: format!("Command runs in the background as process {pid}"),
    })
    .into_response())
}
