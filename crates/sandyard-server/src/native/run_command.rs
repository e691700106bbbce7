//! `POST /sandboxes/run-command` = `/sandboxes/run-cmd`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use sandyard_service::{Command, CommandOutput, RunRequest, ServiceError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::schema::{AnyOfBuilder, ArrayBuilder, Object, ObjectBuilder, Schema, Type};

use crate::app::App;
use crate::bounds::{self, MAX_ARGUMENT, Whole};
use crate::error::ApiError;
use crate::extract::{Body, sandbox_name};
use crate::listen::Ending;
use crate::long_text::LongObject;
use crate::need::Who;
use crate::stream::{self, Detach};

/// Most arguments of a command.
const MAX_ARGUMENTS: usize = 4096;

/// Most bytes that can be asked for of each stream of a command's output.
pub(crate) const MAX_OUTPUT: usize = 8 << 20;

/// What to run: a text for `bash -lc`, or a program and its arguments.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum CommandWords {
    Shell(String),
    Argv(Vec<String>),
}

impl CommandWords {
    pub(crate) fn into_command(self) -> Result<Command, ServiceError> {
        match self {
            Self::Shell(text) => {
                bounds::text("command", &text, 1, MAX_ARGUMENT)?;
                Ok(Command::Shell(text))
            }
            Self::Argv(words) => argv(words).map(Command::Argv),
        }
    }
}

/// Checks a program and its arguments.
pub(crate) fn argv(words: Vec<String>) -> Result<Vec<String>, ServiceError> {
    if !(1..=MAX_ARGUMENTS).contains(&words.len()) || words[0].is_empty() {
        return Err(ServiceError::invalid(
            "command",
            format!("`command` names a program and up to {MAX_ARGUMENTS} arguments"),
        ));
    }
    for word in &words {
        bounds::text("command", word, 0, MAX_ARGUMENT)?;
    }
    Ok(words)
}

/// The schema of a program and its arguments.
pub(crate) fn argv_schema() -> utoipa::openapi::schema::Array {
    ArrayBuilder::new()
        .items(argument(1))
        .min_items(Some(1))
        .max_items(Some(MAX_ARGUMENTS))
        .build()
}

pub(crate) fn command_schema() -> Schema {
    let forms = AnyOfBuilder::new()
        .item(argument(1))
        .item(argv_schema())
        .description(Some(
            "A text for `bash -lc`, or a program and its arguments",
        ))
        .build();
    Schema::AnyOf(forms)
}

fn argument(least: usize) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(least))
        .max_length(Some(MAX_ARGUMENT))
        .pattern(Some(r"^[^\u0000]+$"))
        .build()
}

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
    LongObject::default()
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
    Who(caller): Who,
    ending: Ending,
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
        return stream::command_events(&app, &caller, live, request, detach, ending).await;
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
