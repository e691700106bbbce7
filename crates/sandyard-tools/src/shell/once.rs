//! `run_command`: one command in a shell of its own.

use std::io;
use std::process::Stdio;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

use super::bash::{check_command, default_timeout, wait_of};
use super::follow::exit_code;
use super::program::Program;
use super::screen::Screen;
use super::told;
use crate::call::Call;
use crate::process::Group;
use crate::reply::{Answer, Problem, Reply};
use crate::tool::{Effect, Tool, tool};
use crate::workshop::Workshop;

/// How long the rest of the output may take after the command has ended: background programs may hold it open for ever.
const LAST_WORDS: Duration = Duration::from_millis(200);

#[derive(Deserialize, JsonSchema)]
struct RunCommand {
    /// The command: anything the shell takes.
    command: String,
    /// Folder to run it in, inside the workspace. Without it: the workspace itself.
    #[serde(default)]
    cwd: Option<String>,
    /// Seconds after which it is ended, at most 180.
    #[serde(default = "default_timeout")]
    timeout: f64,
}

/// What it answers, for programs.
#[derive(Debug, Serialize, JsonSchema)]
struct RanOnce {
    /// What it printed, standard output and errors together.
    output: String,
    /// Its exit code; null when it was ended.
    exit_code: Option<i32>,
    /// Whether it took too long and was ended.
    is_timed_out: bool,
    /// How long it took.
    duration_seconds: f64,
    /// Whether output was left out in the middle.
    is_cut: bool,
    /// What else is to be known of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// The tool.
pub(super) fn run_command() -> Tool {
    tool::<RunCommand, _, _>(
        "run_command",
        "Run one command",
        Effect::ChangesOutside,
        "Runs one command in a shell of its own and answers its output and exit code. Nothing stays of it: no folder, no \
         variables; it has no terminal and no input, and is ended after `timeout` seconds. For everything longer use Bash.",
        |workshop, arguments, call| async move { run(&workshop, arguments, &call).await },
    )
    .answers::<RanOnce>()
}

async fn run(workshop: &Workshop, arguments: RunCommand, call: &Call) -> Answer {
    check_command(&arguments.command)?;
    let folder = match arguments.cwd.as_deref() {
        None | Some("") => workshop.workspace.root().to_owned(),
        Some(path) => workshop.workspace.resolve(path)?,
    };
    if !folder.is_dir() {
        return Err(Problem::new(format!(
            "{} is not a folder: make it first",
            folder.display()
        )));
    }
    let begin = Instant::now();
    let wait = wait_of(arguments.timeout);
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
    // Our ends of its pipe go with the command.
    let mut group = Group::start(command).map_err(cannot)?;
    let mut screen = Screen::default();
    let ended = tokio::select! {
        ended = follow(&mut group.child, output, &mut screen) => Some(ended.map_err(cannot)?),
        () = tokio::time::sleep(wait) => None,
        () = call.cancelled.cancelled() => {
            drop(group);
            return Err(Problem::new("the call was cancelled, and the command was ended"));
        }
    };
    let took = begin.elapsed();
    let last = match ended {
        Some(code) => {
            // Whatever it left in the background may go on.
            group.leave();
            format!("[exit code {code}, {}]", told::seconds(took))
        }
        None => {
            drop(group);
            format!(
                "[ended after {} s, which it was given; Bash lets a command go on longer]",
                wait.as_secs_f64()
            )
        }
    };
    let shown = screen.shown();
    let output = told::shown(&shown.text);
    Ok(
        Reply::text(format!("{output}\n{last}")).with_structured(RanOnce {
            exit_code: ended,
            is_timed_out: ended.is_none(),
            duration_seconds: told::rounded(took),
            is_cut: shown.is_cut,
            note: ended.is_none().then_some(last),
            output: shown.text,
        }),
    )
}

/// Hears the command until it has ended, and a moment longer.
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
    // Everything the command itself wrote is in the pipe already, and read in one go; what is cut off here is of others.
    let _ = tokio::time::timeout(LAST_WORDS, rest).await;
    Ok(exit_code(status))
}
