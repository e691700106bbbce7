//! `run_command`: one command in its own shell.

use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

use super::bash::{bounded_wait, check_command, default_timeout};
use super::program::Program;
use super::reader::exit_code;
use super::replies;
use super::screen::Screen;
use crate::call::Call;
use crate::process::ProcessGroup;
use crate::reply::{Answer, Problem, Reply};
use crate::tool::{Effect, Tool, tool};
use crate::tool_state::ToolState;

/// How long to read the rest of the output after the command ended. Background programs may keep it open.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);

#[derive(Deserialize, JsonSchema)]
struct RunCommand {
    /// The shell command.
    command: String,
    /// Working directory, absolute or relative to the workspace (default: the workspace).
    cwd: Option<String>,
    /// Seconds after which the command is killed, 0 to 180 (default 60).
    #[serde(default = "default_timeout")]
    timeout: f64,
}

/// The structured result.
#[derive(Debug, Serialize, JsonSchema)]
struct RunCommandResult {
    /// Standard output and standard error, in the order written.
    output: String,
    /// Exit code; null if the command was killed.
    exit_code: Option<i32>,
    /// Whether the command exceeded its timeout and was killed.
    is_timed_out: bool,
    /// Duration in seconds.
    duration_seconds: f64,
    /// Whether a part in the middle of the output was left out.
    is_cut: bool,
    /// Additional information.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// The tool.
pub(super) fn run_command() -> Tool {
    tool("run_command", Effect::ChangesExternal, run)
        .title("Run one command")
        .description("Run one command in a new shell and return its output and exit code. Nothing persists: no working directory, no variables. \
         The command has no terminal and no input, and is killed after `timeout` seconds. Use Bash for longer commands.")
        .with_output::<RunCommandResult>()
}

async fn run(tool_state: Arc<ToolState>, arguments: RunCommand, call: Call) -> Answer {
    check_command(&arguments.command)?;
    let folder = match arguments.cwd.as_deref() {
        None | Some("") => tool_state.workspace.root().to_owned(),
        Some(path) => tool_state.workspace.resolve(path)?,
    };
    if !folder.is_dir() {
        return Err(Problem::new(format!(
            "{} is not a folder: create it first",
            folder.display()
        )));
    }
    let begin = Instant::now();
    let wait = bounded_wait(arguments.timeout);
    let cannot =
        |error: io::Error| Problem::new(format!("the command could not be started: {error}"));
    let (output, input) = tokio::net::unix::pipe::pipe()
        .map(|(write, read)| (read, write))
        .map_err(cannot)?;
    let input = input.into_blocking_fd().map_err(cannot)?;
    let mut command = Command::new(Program::find().path);
    command
        .arg("-c")
        .arg(&arguments.command)
        .current_dir(&folder)
        .stdin(Stdio::null());
    command
        .stdout(input.try_clone().map_err(cannot)?)
        .stderr(input);
    let mut group = ProcessGroup::start(command).map_err(cannot)?;
    let mut screen = Screen::default();
    let ended = tokio::select! {
        ended = follow(&mut group.child, output, &mut screen) => Some(ended.map_err(cannot)?),
        () = tokio::time::sleep(wait) => None,
        () = call.cancelled.cancelled() => {
            drop(group);
            return Err(Problem::new("the call was cancelled and the command was killed"));
        }
    };
    let duration = begin.elapsed();
    let last = match ended {
        Some(code) => {
            // Background processes of the command may continue.
            group.detach();
            format!("[exit code {code}, {}]", replies::seconds(duration))
        }
        None => {
            drop(group);
            format!(
                "[killed after {} s (timeout); with Bash a command can run longer]",
                wait.as_secs_f64()
            )
        }
    };
    let excerpt = screen.excerpt();
    let output = replies::display_output(&excerpt.text);
    Ok(
        Reply::text(format!("{output}\n{last}")).with_structured(RunCommandResult {
            exit_code: ended,
            is_timed_out: ended.is_none(),
            duration_seconds: replies::rounded(duration),
            is_cut: excerpt.is_cut,
            note: ended.is_none().then_some(last),
            output: excerpt.text,
        }),
    )
}

/// Reads the output until the command has ended, and a moment longer.
async fn follow(
    child: &mut Child,
    mut output: tokio::net::unix::pipe::Receiver,
    screen: &mut Screen,
) -> io::Result<i32> {
    let mut buffer = vec![0; 16 * 1024];
    let mut is_open = true;
    let status = loop {
        tokio::select! {
            count = output.read(&mut buffer), if is_open => match count {
                Ok(count) if count > 0 => {
                    screen.feed(&buffer[..count]);
                    tokio::task::yield_now().await;
                }
                _ => is_open = false,
            },
            status = child.wait() => break status?,
        }
    };
    let rest = async {
        while let Ok(count) = output.read(&mut buffer).await {
            if count == 0 {
                break;
            }
            screen.feed(&buffer[..count]);
        }
    };
    // Everything that the command itself wrote is in the pipe already. The time limit only cuts off other processes.
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, rest).await;
    Ok(exit_code(status))
}
