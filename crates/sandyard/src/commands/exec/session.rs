//! A process with our standard streams, until it ends.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use sandyard_client::{ClientError, Exec, ExecEvent, ExecOutput};
use tokio::io::AsyncWriteExt;

use super::super::terminal::RawTerminal;
use super::input::{self, GaveUp, Input, OnHangUp};
use crate::output;

/// Exit code when the command ran longer than allowed, as `timeout(1)` has it.
pub(in crate::commands) const TIMED_OUT: u8 = 124;
/// Exit code when there is no such command, user or directory, as shells have it.
const NOT_STARTED: u8 = 127;
/// Exit code when our own reader has gone, as shells name the signal it would have been.
const BROKEN_PIPE: u8 = 128 + 13;
/// Exit code when the user interrupted us.
const INTERRUPTED: u8 = 128 + 2;

/// How long a lost connection goes unmentioned where nobody watches.
const NOTICE_AFTER: Duration = Duration::from_secs(2);

/// How to show a process.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct Session {
    pub(in crate::commands) has_terminal: bool,
    pub(in crate::commands) input: Input,
    pub(in crate::commands) on_hang_up: OnHangUp,
    /// Whether it was there before us.
    pub(in crate::commands) has_started: bool,
}

/// Connects a process with our standard streams. The exit code is the process's.
pub(in crate::commands) async fn run(exec: Exec, session: Session) -> anyhow::Result<ExitCode> {
    let Exec { input, mut output } = exec;
    let raw = session.has_terminal.then(RawTerminal::enter).flatten();
    let (tasks, given_up) = input::forward(input, session)?;
    let mut has_started = session.has_started;
    let outcome = tokio::select! {
        outcome = copy(&mut output, &mut has_started) => outcome,
        Ok(GaveUp) = given_up => Ok(ExitCode::from(INTERRUPTED)),
    };
    tasks.abort();
    // Before anything is said: a raw terminal does not go back to the beginning of a line.
    drop(raw);
    outcome.or_else(|error| failed(error, has_started))
}

async fn copy(events: &mut ExecOutput, has_started: &mut bool) -> anyhow::Result<ExitCode> {
    let (mut stdout, mut stderr) = (tokio::io::stdout(), tokio::io::stderr());
    let mut outage = Outage::default();
    loop {
        let written = match outage.watch(events.next()).await? {
            Some(ExecEvent::Start { .. }) => {
                *has_started = true;
                Ok(())
            }
            Some(ExecEvent::Stdout(bytes)) => write(&mut stdout, &bytes).await,
            Some(ExecEvent::Stderr(bytes)) => write(&mut stderr, &bytes).await,
            Some(ExecEvent::Disconnected) => {
                outage.begin();
                Ok(())
            }
            Some(ExecEvent::Reconnected { missing }) => {
                outage.end(missing);
                Ok(())
            }
            Some(ExecEvent::Exit { exit_code: code }) => return Ok(exit_code(code)),
            Some(_) => Ok(()),
            None => bail!("the command's end is not known"),
        };
        match written {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                return Ok(ExitCode::from(BROKEN_PIPE));
            }
            other => other.context("writing the command's output")?,
        }
    }
}

/// Tells the user that the connection is lost: at once on a terminal, elsewhere when it takes long.
#[derive(Debug, Default)]
struct Outage {
    is_on: bool,
    is_told: bool,
}

impl Outage {
    fn begin(&mut self) {
        self.is_on = true;
        if std::io::stderr().is_terminal() {
            self.tell();
        }
    }

    fn tell(&mut self) {
        self.is_told = true;
        notice("connection lost; reconnecting…");
    }

    fn end(&mut self, missing: u64) {
        if self.is_told {
            notice("reconnected");
        }
        if missing > 0 {
            notice(&format!(
                "{missing} bytes of output are missing: the sandbox no longer kept them"
            ));
        }
        *self = Self::default();
    }

    /// Waits for what comes next.
    async fn watch<T>(&mut self, next: impl Future<Output = T>) -> T {
        let mut next = std::pin::pin!(next);
        if self.is_on && !self.is_told {
            match tokio::time::timeout(NOTICE_AFTER, &mut next).await {
                Ok(done) => return done,
                Err(_) => self.tell(),
            }
        }
        next.await
    }
}

/// Prints a remark in the middle of output; a raw terminal does not go back to the beginning of a line by itself.
fn notice(text: &str) {
    let (before, after) = match std::io::stderr().is_terminal() {
        true => ("\r\n", "\r"),
        false => ("", ""),
    };
    output::note(format!("{before}sandyard: {text}{after}"));
}

async fn write(to: &mut (impl AsyncWriteExt + Unpin), bytes: &[u8]) -> std::io::Result<()> {
    to.write_all(bytes).await?;
    to.flush().await
}

fn failed(error: anyhow::Error, has_started: bool) -> anyhow::Result<ExitCode> {
    let refusal = error.downcast_ref().and_then(ClientError::code);
    let code = match refusal {
        Some("timed_out") => TIMED_OUT,
        // The sandbox was there, or the connection had been refused: what is wrong is the command, the user or the folder.
        Some("invalid" | "not_found" | "file_not_found") if !has_started => NOT_STARTED,
        _ => return Err(error),
    };
    output::error(&error);
    Ok(ExitCode::from(code))
}

/// The command's exit code as ours.
pub(in crate::commands) fn exit_code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code & 0xff).unwrap_or(u8::MAX))
}
