//! A command's output as server-sent events.
//!
//! `start {pid, cwd}`, then `stdout {text}` and `stderr {text}` as they come, then `exit {exit_code, duration_ms}` or
//! `error {code, detail}`. When the client disconnects, the command is killed, unless it asked for `detach`.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::time::Instant;

use axum::response::sse::Event;
use futures_util::{Stream, stream};
use sandyard_agent_client::wire::event::{Output, ProcessEvent};
use sandyard_agent_client::{ClientError, wire};
use sandyard_service::{Live, RunRequest};
use serde_json::json;

use super::child::Child;
use super::sse;
use super::utf8::Utf8Decoder;
use crate::listen::Shutdown;
use crate::model::command::{CommandText, command_schema, run_request};
use crate::prelude::*;

/// Whether a command outlives its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detach {
    /// The command is killed when its client disconnects.
    No,
    /// The command continues.
    Yes,
}

/// Command to run with streamed output.
#[derive(Deserialize, ToSchema)]
pub(super) struct RunBody {
    /// Shell command, or program and arguments.
    #[schema(schema_with = command_schema)]
    command: CommandText,
    /// Working directory. Default: the user's home directory, or the operator's `sandbox.workdir`.
    #[schema(min_length = 1, max_length = 4096, pattern = r"^[^\u0000]+$")]
    cwd: Option<String>,
    /// Environment variables added to the sandbox's.
    #[schema(schema_with = bounds::env_schema)]
    env: Option<BTreeMap<String, String>>,
    /// User inside the sandbox who runs the command. Default: the sandbox's default user.
    #[schema(min_length = 1, max_length = 64, pattern = r"^[^\u0000]+$")]
    user: Option<String>,
    /// Maximum run time in seconds (default: unlimited). The server then kills the command with all its children.
    #[schema(minimum = 0.001, maximum = 31536000)]
    timeout: Option<f64>,
    /// Whether the command keeps running when the client disconnects (default false).
    detach: Option<bool>,
}

/// Command to run with streamed output, and the sandbox to run it in.
// It repeats the fields of `RunBody`, because unknown fields beside a flattened type are not noticed.
#[derive(Deserialize, ToSchema)]
pub(super) struct RunStreamBody {
    /// Sandbox to run the command in.
    #[schema(schema_with = bounds::sandbox_id_schema)]
    sandbox_id: String,
    /// Shell command, or program and arguments.
    #[schema(schema_with = command_schema)]
    command: CommandText,
    /// Working directory. Default: the user's home directory, or the operator's `sandbox.workdir`.
    #[schema(min_length = 1, max_length = 4096, pattern = r"^[^\u0000]+$")]
    cwd: Option<String>,
    /// Environment variables added to the sandbox's.
    #[schema(schema_with = bounds::env_schema)]
    env: Option<BTreeMap<String, String>>,
    /// User inside the sandbox who runs the command. Default: the sandbox's default user.
    #[schema(min_length = 1, max_length = 64, pattern = r"^[^\u0000]+$")]
    user: Option<String>,
    /// Maximum run time in seconds (default: unlimited). The server then kills the command with all its children.
    #[schema(minimum = 0.001, maximum = 31536000)]
    timeout: Option<f64>,
    /// Whether the command keeps running when the client disconnects (default false).
    detach: Option<bool>,
}

impl From<RunStreamBody> for RunBody {
    fn from(body: RunStreamBody) -> Self {
        Self {
            command: body.command,
            cwd: body.cwd,
            env: body.env,
            user: body.user,
            timeout: body.timeout,
            detach: body.detach,
        }
    }
}

impl RunBody {
    fn into_request(self) -> ServiceResult<(RunRequest, Detach)> {
        let command = self.command.into_command()?;
        let request = run_request(command, self.cwd, self.env, self.user, self.timeout)?;
        let detach = match self.detach {
            Some(true) => Detach::Yes,
            _ => Detach::No,
        };
        Ok((request, detach))
    }
}

/// Run a command and stream its output
///
/// Runs a command and sends its output as server-sent events while it runs: `start` with the process ID and the directory, `stdout` and
/// `stderr` with text, and `exit` with the exit code, or `error`. When the client disconnects, the command is killed,
/// unless `detach` is set.
#[utoipa::path(
    post, path = "/sandboxes/run-command-stream", tag = "commands", request_body = RunStreamBody,
    responses((status = 200, description = "Command started; its output is streamed until it ends.", content_type = "text/event-stream"))
)]
pub(super) async fn run_command_stream(
    call: Call,
    shutdown: Shutdown,
    Body(body): Body<RunStreamBody>,
) -> ApiResult<Response> {
    let name = sandbox_name(&body.sandbox_id)?.to_owned();
    let (request, detach) = RunBody::from(body).into_request()?;
    let live = call.live(&name).await?;
    command_events(&call, live, request, detach, shutdown).await
}

/// Run a command in this sandbox and stream its output
///
/// Same as `POST /sandboxes/run-command-stream`, with the sandbox in the path.
#[utoipa::path(
    post, path = "/sandboxes/{id}/run", tag = "commands", params(SandboxName), request_body = RunBody,
    responses((status = 200, description = "Command started; its output is streamed until it ends.", content_type = "text/event-stream"))
)]
pub(super) async fn run_in_sandbox(
    call: Call,
    name: SandboxName,
    shutdown: Shutdown,
    Body(body): Body<RunBody>,
) -> ApiResult<Response> {
    let (request, detach) = body.into_request()?;
    let live = call.live(&name.id).await?;
    command_events(&call, live, request, detach, shutdown).await
}

/// Starts a command and streams its output.
///
/// # Errors
///
/// When the command cannot be started. Later failures are events.
pub(crate) async fn command_events(
    call: &Call,
    live: Live,
    request: RunRequest,
    detach: Detach,
    shutdown: Shutdown,
) -> ApiResult<Response> {
    let started_at = Instant::now();
    let timeout = match detach {
        Detach::No => Some(call.service().foreground_timeout(request.timeout)?),
        // A detached command has no time limit by default.
        Detach::Yes => request.timeout,
    };
    let request = RunRequest { timeout, ..request };
    let mut child = Child::start(call, live, request).await?;
    if detach == Detach::Yes {
        child.detach();
    }
    Ok(sse::respond(events_of(child, started_at, shutdown)))
}

/// The events of a command.
struct CommandEvents {
    child: Child,
    started_at: Instant,
    stdout: Utf8Decoder,
    stderr: Utf8Decoder,
    /// Events that are not sent yet: the end of a command produces several.
    ready: VecDeque<Event>,
    has_ended: bool,
}

fn events_of(
    child: Child,
    started_at: Instant,
    shutdown: Shutdown,
) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    let start = sse::event(
        "start",
        &json!({"pid": child.pid(), "cwd": child.identity().cwd}),
    );
    let events = CommandEvents {
        child,
        started_at,
        stdout: Utf8Decoder::default(),
        stderr: Utf8Decoder::default(),
        ready: VecDeque::from([start]),
        has_ended: false,
    };
    stream::unfold((events, shutdown), |(mut events, shutdown)| async move {
        let event = events.next(&shutdown).await?;
        Some((Ok(event), (events, shutdown)))
    })
}

impl CommandEvents {
    async fn next(&mut self, shutdown: &Shutdown) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.has_ended {
                return None;
            }
            tokio::select! {
                event = self.child.next() => self.take(event),
                () = shutdown.wait() => self.detach(),
            }
        }
    }

    fn take(&mut self, event: Option<Result<ProcessEvent, ClientError>>) {
        match event {
            Some(Ok(ProcessEvent::Data(output))) => self.take_output(&output),
            Some(Ok(ProcessEvent::End(end))) => {
                self.flush();
                let took_ms =
                    u64::try_from(self.started_at.elapsed().as_millis()).unwrap_or(u64::MAX);
                let exit = json!({"exit_code": end.shell_code(), "duration_ms": took_ms});
                self.end(sse::event("exit", &exit));
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => self.fail(error),
            None => self.fail(ClientError::Closed {
                call: wire::routes::process::START,
            }),
        }
    }

    fn take_output(&mut self, output: &Output) {
        let (name, text) = match output {
            Output::Stderr(bytes) => ("stderr", self.stderr.push(bytes)),
            Output::Stdout(bytes) | Output::Pty(bytes) => ("stdout", self.stdout.push(bytes)),
        };
        self.push_text(name, text);
    }

    fn push_text(&mut self, name: &str, text: String) {
        if !text.is_empty() {
            self.ready
                .push_back(sse::event(name, &json!({"text": text})));
        }
    }

    fn flush(&mut self) {
        let (stdout, stderr) = (self.stdout.finish(), self.stderr.finish());
        self.push_text("stdout", stdout);
        self.push_text("stderr", stderr);
    }

    fn fail(&mut self, error: ClientError) {
        self.flush();
        self.end(sse::failure(&ServiceError::from(error)));
    }

    /// The server shuts down; sandboxes and their commands continue.
    fn detach(&mut self) {
        self.child.detach();
        self.flush();
        let text = format!(
            "the server shuts down; process {} continues",
            self.child.pid()
        );
        self.end(sse::failure(&sse::shutting_down(text)));
    }

    fn end(&mut self, event: Event) {
        self.ready.push_back(event);
        self.has_ended = true;
    }
}
