//! `Bash`: runs a command in a session.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use super::session::Session;
use super::sessions::Had;
use super::state::{Doing, Finished};
use super::{stop, told};
use crate::call::Call;
use crate::reply::{Answer, Problem};
use crate::tool::{Effect, Tool, tool};
use crate::workshop::Workshop;

/// Longest command.
pub(super) const MAX_COMMAND: usize = 256 * 1024;
/// Longest wait.
const MAX_TIMEOUT: f64 = 180.0;

#[derive(Deserialize, JsonSchema)]
struct Bash {
    /// The session to run it in, such as `main`: letters, digits, `_`, `.` and `-`. It is made where there is none.
    session_name: String,
    /// The command: anything bash takes, over as many lines as it needs.
    command: String,
    /// What it does, in 5 to 10 words.
    #[serde(default)]
    description: Option<String>,
    /// Seconds to wait for its end, at most 180. It is not stopped then, but goes on in the session.
    #[serde(default = "default_timeout")]
    timeout: f64,
    /// Set to false to come back at once and let it run: for servers and everything else that does not end.
    #[serde(default = "yes")]
    wait_for_output: bool,
}

pub(super) fn default_timeout() -> f64 {
    60.0
}

pub(super) fn yes() -> bool {
    true
}

/// A time to wait, within bounds.
pub(super) fn wait_of(seconds: f64) -> Duration {
    Duration::from_secs_f64(if seconds.is_finite() {
        seconds.clamp(0.0, MAX_TIMEOUT)
    } else {
        MAX_TIMEOUT
    })
}

/// Whether it can be a command.
pub(super) fn check_command(command: &str) -> Result<(), Problem> {
    if command.contains('\0') {
        return Err(Problem::new(
            "the command has a NUL character in it, which no shell takes",
        ));
    }
    if command.len() > MAX_COMMAND {
        return Err(Problem::new(format!(
            "the command is {} bytes long; {MAX_COMMAND} are the most. Write a script to a file and run that",
            command.len()
        )));
    }
    Ok(())
}

/// The tool.
pub(super) fn bash() -> Tool {
    tool::<Bash, _, _>(
        "Bash",
        "Run a command",
        Effect::ChangesOutside,
        "Runs a command in a named shell session and answers what it printed, its exit code and the folder the shell \
         is in. The \
         folder, variables, functions and background jobs of a session stay from command to command. A command that \
         takes longer \
         than `timeout` seconds goes on: look at it with BashView, answer its questions with BashWriteToProcess, stop it with \
         BashStop. A session runs one command at a time; use several sessions for several. Start servers with \
         wait_for_output=false. Of very long output the beginning and the end are shown.",
        |workshop, arguments, call| async move { run(&workshop, arguments, &call).await },
    )
    .answers::<told::Ran>()
}

async fn run(workshop: &Workshop, arguments: Bash, call: &Call) -> Answer {
    check_command(&arguments.command)?;
    let (session, had) = workshop
        .sessions
        .obtain(&workshop.workspace, &arguments.session_name, None)
        .await?;
    let first = match had {
        Had::Already => String::new(),
        Had::New => format!("[session {} was made for this command]", session.name),
        Had::Again => format!(
            "[the shell of session {} had ended: this is a new one, without its variables]",
            session.name
        ),
    };
    let (number, mut done) = session.begin(&arguments.command, arguments.description)?;
    if !arguments.wait_for_output {
        return Ok(told::running(&session, &first, "The command was started."));
    }
    let wait = wait_of(arguments.timeout);
    tokio::select! {
        ended = &mut done => match ended {
            Ok(ended) => Ok(told::finished(&session, &ended, &first)),
            Err(_) => Err(Problem::new("the session was ended while the command ran")),
        },
        () = sleep(wait) => {
            let why = format!("The command has not ended within {} s and goes on.", wait.as_secs_f64());
            Ok(told::running(&session, &first, &why))
        }
        () = call.cancelled.cancelled() => Ok(cancel(&session, number, done, &first).await),
        () = report(&session, call) => Err(Problem::new("the call was cancelled")),
    }
}

/// Stops a command nobody waits for any more.
async fn cancel(
    session: &Arc<Session>,
    number: u64,
    mut done: oneshot::Receiver<Arc<Finished>>,
    first: &str,
) -> crate::reply::Reply {
    // Another may run there by now.
    let is_running =
        matches!(&session.state().doing, Doing::Command(running) if running.number == number);
    if is_running {
        // The caller may be gone before it has ended, and all of this with it.
        let session = session.clone();
        let stop = tokio::spawn(async move { stop::interrupt(&session, number).await });
        let _ = stop.await;
    }
    match done.try_recv() {
        Ok(ended) => told::finished(session, &ended, first),
        Err(_) => told::running(
            session,
            first,
            "The call was cancelled, and the command did not stop.",
        ),
    }
}

/// Tells the last line every second, for as long as somebody wants it.
async fn report(session: &Session, call: &Call) {
    if !call.progress.is_wanted() {
        return std::future::pending().await;
    }
    let second = Duration::from_secs(1);
    let mut ticks = interval_at(Instant::now() + second, second);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let line = session.state().screen.last_line();
        call.progress
            .tell(if line.is_empty() {
                "running".to_owned()
            } else {
                line
            })
            .await;
    }
}
