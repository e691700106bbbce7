//! A command's output as server-sent events.
//!
//! `start {pid}`, then `stdout {text}` and `stderr {text}` as they come, then `exit {exit_code, duration_ms}` or
//! `error {code, detail}`. A client that goes takes the command with it, unless it asked for `detach`.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::response::Response;
use axum::response::sse::Event;
use futures_util::{Stream, stream};
use sandyard_agent_client::wire::event::{Output, ProcessEvent};
use sandyard_agent_client::{ClientError, wire};
use sandyard_core::Caller;
use sandyard_service::{Live, RunRequest, ServiceError};
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use super::child::Child;
use super::sse;
use super::utf8::Utf8Pieces;
use crate::app::App;
use crate::bounds;
use crate::error::ApiError;
use crate::extract::{Body, SandboxName, sandbox_name};
use crate::listen::Ending;
use crate::native::run_command::{CommandWords, command_schema};
use crate::need::Who;

/// Whether a command outlives its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detach {
    /// It is killed when its client goes.
    No,
    /// It runs on.
    Yes,
}

/// What to run.
#[derive(Deserialize, ToSchema)]
pub(super) struct RunBody {
    #[schema(schema_with = command_schema)]
    command: CommandWords,
    /// Where to run it; the user's home if it is left out.
    #[schema(min_length = 1, max_length = 4096, pattern = r"^[^\u0000]+$")]
    cwd: Option<String>,
    /// Variables on top of the sandbox's.
    #[schema(schema_with = bounds::env_schema)]
    env: Option<BTreeMap<String, String>>,
    /// Who runs it; the sandbox's user if it is left out.
    #[schema(min_length = 1, max_length = 64, pattern = r"^[^\u0000]+$")]
    user: Option<String>,
    /// Seconds it may take; then it is killed with all its children.
    #[schema(minimum = 0.001, maximum = 31536000)]
    timeout: Option<f64>,
    /// Whether it runs on when the client goes.
    detach: Option<bool>,
}

/// What to run, and where.
#[derive(Deserialize, ToSchema)]
pub(super) struct RunStreamBody {
    /// The sandbox: its id, its provider's id or its alias.
    #[schema(schema_with = bounds::sandbox_id_schema)]
    sandbox_id: String,
    #[serde(flatten)]
    run: RunBody,
}

impl RunBody {
    fn into_request(self) -> Result<(RunRequest, Detach), ServiceError> {
        let mut request = RunRequest::new(self.command.into_command()?);
        request.cwd = self.cwd;
        request.env = self.env.unwrap_or_default();
        request.user = self.user;
        request.timeout = self.timeout.map(seconds).transpose()?;
        check(&request)?;
        let detach = match self.detach {
            Some(true) => Detach::Yes,
            _ => Detach::No,
        };
        Ok((request, detach))
    }
}

/// Refuses what cannot be the circumstances of a command.
pub(super) fn check(request: &RunRequest) -> Result<(), ServiceError> {
    bounds::optional_text("cwd", request.cwd.as_deref(), 1, bounds::MAX_PATH)?;
    bounds::optional_text("user", request.user.as_deref(), 1, 64)?;
    bounds::env("env", &request.env)
}

/// A time that makes sense.
pub(super) fn seconds(seconds: f64) -> Result<Duration, ServiceError> {
    bounds::command_seconds(seconds)?;
    Ok(Duration::from_secs_f64(seconds))
}

/// Runs a command and sends its output as it comes.
#[utoipa::path(post, path = "/sandboxes/run-command-stream", operation_id = "run_command_stream", tag = "commands",
    request_body = RunStreamBody,
    responses(
        (status = 200, description = "Events: start, stdout, stderr, exit, error", content_type = "text/event-stream")))]
pub(super) async fn run_command_stream(
    State(app): State<App>,
    Who(caller): Who,
    ending: Ending,
    Body(body): Body<RunStreamBody>,
) -> Result<Response, ApiError> {
    let (request, detach) = body.run.into_request()?;
    let live = app
        .service()
        .live(&caller, sandbox_name(&body.sandbox_id)?)
        .await?;
    command_events(&app, &caller, live, request, detach, ending).await
}

/// Runs a command and sends its output as it comes.
///
/// The same as `run-command-stream`, with the sandbox in the path.
#[utoipa::path(post, path = "/sandboxes/{id}/run", operation_id = "run_in_sandbox", tag = "commands",
    params(SandboxName),
    request_body = RunBody,
    responses(
        (status = 200, description = "Events: start, stdout, stderr, exit, error", content_type = "text/event-stream")))]
pub(super) async fn run_in_sandbox(
    State(app): State<App>,
    Who(caller): Who,
    name: SandboxName,
    ending: Ending,
    Body(body): Body<RunBody>,
) -> Result<Response, ApiError> {
    let (request, detach) = body.into_request()?;
    let live = app.service().live(&caller, &name.id).await?;
    command_events(&app, &caller, live, request, detach, ending).await
}

/// Starts a command and answers with its output as it comes.
///
/// # Errors
///
/// When it cannot be started. What goes wrong later is an event.
pub(crate) async fn command_events(
    app: &App,
    caller: &Caller,
    live: Live,
    request: RunRequest,
    detach: Detach,
    ending: Ending,
) -> Result<Response, ApiError> {
    let began = Instant::now();
    let timeout = match detach {
        Detach::No => Some(app.service().foreground_timeout(request.timeout)?),
        // In the background it has no end of its own.
        Detach::Yes => request.timeout,
    };
    let request = RunRequest { timeout, ..request };
    let mut child = Child::start(app.service(), caller, live, request).await?;
    if detach == Detach::Yes {
        child.leave();
    }
    Ok(sse::respond(events_of(child, began, ending)))
}

/// Where the events of a command stand.
struct Progress {
    child: Child,
    began: Instant,
    stdout: Utf8Pieces,
    stderr: Utf8Pieces,
    /// Made but not asked for yet: what the end of a command makes comes at once.
    ready: VecDeque<Event>,
    is_over: bool,
}

fn events_of(
    child: Child,
    began: Instant,
    ending: Ending,
) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    let start = sse::event("start", &json!({"pid": child.pid()}));
    let progress = Progress {
        child,
        began,
        stdout: Utf8Pieces::default(),
        stderr: Utf8Pieces::default(),
        ready: VecDeque::from([start]),
        is_over: false,
    };
    stream::unfold((progress, ending), |(mut progress, ending)| async move {
        let event = progress.next(&ending).await?;
        Some((Ok(event), (progress, ending)))
    })
}

impl Progress {
    async fn next(&mut self, ending: &Ending) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            tokio::select! {
                event = self.child.next() => self.take(event),
                () = ending.wait() => self.leave(),
            }
        }
    }

    fn take(&mut self, event: Option<Result<ProcessEvent, ClientError>>) {
        match event {
            Some(Ok(ProcessEvent::Data(output))) => self.take_output(&output),
            Some(Ok(ProcessEvent::End(end))) => {
                self.flush();
                let took_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
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
        self.say(name, text);
    }

    fn say(&mut self, name: &str, text: String) {
        if !text.is_empty() {
            self.ready
                .push_back(sse::event(name, &json!({"text": text})));
        }
    }

    fn flush(&mut self) {
        let (stdout, stderr) = (self.stdout.finish(), self.stderr.finish());
        self.say("stdout", stdout);
        self.say("stderr", stderr);
    }

    fn fail(&mut self, error: ClientError) {
        self.flush();
        self.end(sse::failure(&ServiceError::from(error)));
    }

    /// The server ends; sandboxes and what runs in them do not.
    fn leave(&mut self) {
        self.child.leave();
        self.flush();
        let text = format!("the server ends; process {} runs on", self.child.pid());
        self.end(sse::failure(&sse::server_ends(text)));
    }

    fn end(&mut self, event: Event) {
        self.ready.push_back(event);
        self.is_over = true;
    }
}
