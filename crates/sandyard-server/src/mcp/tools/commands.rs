//! Commands in a sandbox.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sandyard_agent_client::wire::event::{Output, ProcessEvent};
use sandyard_core::Scope;
use sandyard_service::{Command, RunRequest};
use serde_json::{Value, json};
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::bounds::MAX_ARGUMENT;
use crate::mcp::excerpt::Excerpt;
use crate::mcp::outcome::Outcome;
use crate::mcp::tool::{Effect, Progress, Tool, ToolCall, sandbox_id};
use crate::model::command::run_request;
use crate::prelude::*;
use crate::stream::Child;

/// How often progress is told at most, and that there is none.
const TELL_EVERY: Duration = Duration::from_millis(500);
/// Longest line of output that is told as progress.
const MAX_LINE: usize = 200;

pub(super) const TOOLS: [Tool; 1] = [Tool {
    name: "run_command",
    title: "Run a command",
    description: "Runs a command with bash in a sandbox and answers its output and exit code. A non-zero exit code is no failure of \
                  this tool. Long output is cut in the middle, and says so. A command that is over its time is killed; start servers \
                  and long work with `background: true` and look at `sandbox_logs`.",
    scope: Scope::Use,
    effect: Effect::Destroys,
    is_open: true,
    input: || {
        json!({
            "sandbox_id": sandbox_id(),
            "command": {"type": "string", "minLength": 1, "maxLength": MAX_ARGUMENT, "description": "A text for `bash -lc`"},
            "cwd": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "Where to run it; the user's home if left out"},
            "env": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Variables on top of the sandbox's"},
            "user": {"type": "string", "minLength": 1, "maxLength": 64, "description": "Who runs it, like `root`; the sandbox's user if left out"},
            "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": bounds::MAX_SECONDS, "description": "Seconds it may take"},
            "background": {"type": "boolean", "description": "Leaves it running and answers at once"},
        })
    },
    required: &["sandbox_id", "command"],
    output: Some(|| {
        json!({
            "exit_code": {"type": ["integer", "null"], "description": "128 + n after signal n; null: it runs on or was killed"},
            "stdout": {"type": "string"},
            "stderr": {"type": "string"},
            "truncated": {"type": "boolean", "description": "Whether output was left out"},
            "timed_out": {"type": "boolean"},
            "process_id": {"type": "integer"},
            "duration_ms": {"type": "integer"},
        })
    }),
    output_required: &[
        "exit_code",
        "stdout",
        "stderr",
        "truncated",
        "timed_out",
        "process_id",
    ],
    run: |call| Box::pin(run(call)),
}];

#[derive(Deserialize)]
struct Run {
    sandbox_id: String,
    command: String,
    cwd: Option<String>,
    env: Option<BTreeMap<String, String>>,
    user: Option<String>,
    timeout: Option<f64>,
    background: Option<bool>,
}

impl Run {
    fn into_request(self) -> ServiceResult<RunRequest> {
        bounds::text("command", &self.command, 1, MAX_ARGUMENT)?;
        let command = Command::Shell(self.command);
        run_request(command, self.cwd, self.env, self.user, self.timeout)
    }
}

async fn run(mut call: ToolCall) -> ApiResult<Outcome> {
    let asked: Run = call.read()?;
    let name = sandbox_name(&asked.sandbox_id)?.to_owned();
    let is_background = asked.background.unwrap_or(false);
    let mut request = asked.into_request()?;
    let service = call.service().clone();
    if !is_background {
        request.timeout = Some(service.foreground_timeout(request.timeout)?);
    }
    let live = call.live(&name).await?;
    if is_background {
        let (pid, _) = service.start_command(&call.caller, &live, request).await?;
        let text =
            format!("Runs in the background as process {pid}; `sandbox_logs` shows what it writes");
        return Ok(Outcome::with_text(
            report(pid, None, &Transcript::default()),
            text,
        ));
    }
    let started_at = Instant::now();
    let child = Child::start(&call, live, request).await?;
    follow(child, started_at, call.progress).await
}

/// What a command wrote so far.
#[derive(Default)]
struct Transcript {
    stdout: Excerpt,
    stderr: Excerpt,
    /// The line that was written last, as far as it has come.
    line: String,
    is_timed_out: bool,
}

impl Transcript {
    fn take(&mut self, output: &Output) {
        let (excerpt, bytes) = match output {
            Output::Stderr(bytes) => (&mut self.stderr, bytes),
            Output::Stdout(bytes) | Output::Pty(bytes) => (&mut self.stdout, bytes),
        };
        excerpt.push(bytes);
        let start = bytes.len().saturating_sub(4 * MAX_LINE);
        let text = String::from_utf8_lossy(&bytes[start..]);
        if let Some(line) = text.lines().rev().find(|line| !line.trim().is_empty()) {
            let plain = line.chars().filter(|c| !c.is_control());
            self.line = plain.take(MAX_LINE).collect();
        }
    }
}

/// Waits for a command's end. Dropping this kills it.
async fn follow(
    mut child: Child,
    started_at: Instant,
    mut progress: Progress,
) -> ApiResult<Outcome> {
    let mut transcript = Transcript::default();
    let pid = child.pid();
    let mut ticks = ticks();
    let exit_code = loop {
        let event = tokio::select! {
            event = child.next() => event,
            _ = ticks.tick(), if progress.is_wanted() => {
                let seconds = started_at.elapsed().as_secs();
                progress.report(format!("{seconds} s: {}", transcript.line)).await;
                continue;
            }
        };
        match event {
            Some(Ok(ProcessEvent::Data(output))) => transcript.take(&output),
            Some(Ok(ProcessEvent::End(end))) => break Some(end.shell_code()),
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                let error = ServiceError::from(error);
                if error.kind != ErrorKind::TimedOut {
                    return Err(error.into());
                }
                transcript.is_timed_out = true;
                break None;
            }
            None => {
                let detail = "the sandbox ended while the command ran";
                return Err(ApiError::new(ErrorKind::AgentFailed, detail));
            }
        }
    };
    let mut value = report(pid, exit_code, &transcript);
    value["duration_ms"] = u64::try_from(started_at.elapsed().as_millis())
        .unwrap_or(u64::MAX)
        .into();
    let outcome = Outcome::with_text(value, text(exit_code, &transcript));
    Ok(if transcript.is_timed_out {
        outcome.failed()
    } else {
        outcome
    })
}

fn ticks() -> Interval {
    let mut ticks = interval(TELL_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

fn report(pid: u32, exit_code: Option<i32>, transcript: &Transcript) -> Value {
    json!({
        "exit_code": exit_code,
        "stdout": transcript.stdout.text(),
        "stderr": transcript.stderr.text(),
        "truncated": transcript.stdout.is_cut() || transcript.stderr.is_cut(),
        "timed_out": transcript.is_timed_out,
        "process_id": pid,
    })
}

/// The same for models.
fn text(exit_code: Option<i32>, transcript: &Transcript) -> String {
    let mut text = transcript.stdout.text();
    let errors = transcript.stderr.text();
    if !errors.is_empty() {
        let gap = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        text += &format!("{gap}[stderr]\n{errors}");
    }
    let gap = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    match exit_code {
        Some(code) => text += &format!("{gap}[exit code {code}]"),
        None => {
            text += gap;
            text += "[killed: its time was over. Give it a longer `timeout`, or run it with `background: true`]";
        }
    }
    text
}
