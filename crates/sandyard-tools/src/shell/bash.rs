//! `Bash`: runs a command in a session.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use super::session::Session;
use super::sessions::Obtained;
use super::state::{Activity, Finished};
use super::{replies, stop};
use crate::call::Call;
use crate::reply::{Answer, Problem, Result};
use crate::tool::{Effect, Tool, tool};
use crate::tool_state::ToolState;

/// Maximum length of a command, in bytes.
pub(super) const MAX_COMMAND: usize = 256 * 1024;
/// Maximum timeout, in seconds.
const MAX_TIMEOUT: f64 = 180.0;

#[derive(Deserialize, JsonSchema)]
struct Bash {
    /// Name of the session, for example `main`: letters, digits, `_`, `.` and `-`. A missing session is created.
    session_name: String,
    /// The bash command; may have several lines.
    command: String,
    /// What the command does, in 5 to 10 words.
    description: Option<String>,
    /// Seconds to wait for the command to end, 0 to 180 (default 60). After that the command keeps running in the session.
    #[serde(default = "default_timeout")]
    timeout: f64,
    /// Set to false to return at once and leave the command running, for servers and other commands that do not end (default true).
    #[serde(default = "yes")]
    wait_for_output: bool,
}

pub(super) fn default_timeout() -> f64 {
    60.0
}

pub(super) fn yes() -> bool {
    true
}

/// A timeout within the limits.
pub(super) fn bounded_wait(seconds: f64) -> Duration {
    Duration::from_secs_f64(if seconds.is_finite() {
        seconds.clamp(0.0, MAX_TIMEOUT)
    } else {
        MAX_TIMEOUT
    })
}

/// Checks that a text can be a command.
pub(super) fn check_command(command: &str) -> Result<()> {
    if command.contains('\0') {
        return Err(Problem::new(
            "the command contains a NUL character, which shells do not accept",
        ));
    }
    if command.len() > MAX_COMMAND {
        return Err(Problem::new(format!(
            "the command has {} bytes, the maximum is {MAX_COMMAND}: write a script to a file and run that",
            command.len()
        )));
    }
    Ok(())
}

/// The tool.
pub(super) fn bash() -> Tool {
    tool("Bash", Effect::ChangesExternal, run)
        .title("Run a command")
        .description("Run a command in a named shell session. Returns its output, its exit code and the shell's working directory. The working \
         directory, variables, functions and background jobs of a session persist between commands. A command that exceeds \
         `timeout` keeps running: use BashView to see its output, BashWriteToProcess to type into it, BashStop to stop it. A \
         session runs one command at a time; use several sessions to run several commands. Start servers with \
         wait_for_output=false. Long output is shortened in the middle.")
        .with_output::<replies::CommandResult>()
}

async fn run(tool_state: Arc<ToolState>, arguments: Bash, call: Call) -> Answer {
    check_command(&arguments.command)?;
    let (session, obtained) = tool_state
        .sessions
        .obtain(&tool_state.workspace, &arguments.session_name, None)
        .await?;
    let first = match obtained {
        Obtained::Existing => String::new(),
        Obtained::New => format!("[session {} was created for this command]", session.name),
        Obtained::Restarted => format!(
            "[the shell of session {} had ended: this is a new shell without its variables]",
            session.name
        ),
    };
    let (number, mut done) = session.begin(&arguments.command, arguments.description)?;
    if !arguments.wait_for_output {
        return Ok(replies::running(
            &session,
            &first,
            "The command was started.",
        ));
    }
    let wait = bounded_wait(arguments.timeout);
    tokio::select! {
        ended = &mut done => match ended {
            Ok(ended) => Ok(replies::finished(&session, &ended, &first)),
            Err(_) => Err(Problem::new("the session ended while the command was running")),
        },
        () = sleep(wait) => {
            let why = format!("The command did not end within {} s and keeps running.", wait.as_secs_f64());
            Ok(replies::running(&session, &first, &why))
        }
        () = call.cancelled.cancelled() => Ok(cancel(&session, number, done, &first).await),
        () = report(&session, &call) => Err(Problem::new("the call was cancelled")),
    }
}

/// Stops the command of a cancelled call.
async fn cancel(
    session: &Arc<Session>,
    number: u64,
    mut done: oneshot::Receiver<Arc<Finished>>,
    first: &str,
) -> crate::reply::Reply {
    // Another command may run by now.
    let is_running =
        matches!(&session.state().activity, Activity::Command(running) if running.number == number);
    if is_running {
        // In its own task, because this call may be dropped before the command has ended.
        let session = session.clone();
        let stop = tokio::spawn(async move { stop::interrupt(&session, number).await });
        let _ = stop.await;
    }
    match done.try_recv() {
        Ok(ended) => replies::finished(session, &ended, first),
        Err(_) => replies::running(
            session,
            first,
            "The call was cancelled, and the command did not stop.",
        ),
    }
}

/// Reports the last line of the output every second, if the caller asked for progress.
async fn report(session: &Session, call: &Call) {
    if !call.progress.is_enabled() {
        return std::future::pending().await;
    }
    let second = Duration::from_secs(1);
    let mut ticks = interval_at(Instant::now() + second, second);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let line = session.state().screen.last_line();
        call.progress
            .report(if line.is_empty() {
                "running".to_owned()
            } else {
                line
            })
            .await;
    }
}
