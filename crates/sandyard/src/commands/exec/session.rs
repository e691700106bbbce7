//! Connects a process to our standard streams until it ends.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use sandyard_client::{ClientError, Exec, ExecEvent, ExecOutput};
use tokio::io::AsyncWriteExt;

use super::super::exit_code::{BROKEN_PIPE, INTERRUPTED, NOT_STARTED, TIMED_OUT};
use super::super::terminal::RawTerminal;
use super::input::{self, Input, OnHangup, Quit};
use crate::output;

/// How long a connection is lost before we report it, unless standard error is a terminal.
const REPORT_AFTER: Duration = Duration::from_secs(2);

/// How to connect to a process.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct Session {
    pub(in crate::commands) has_terminal: bool,
    pub(in crate::commands) input: Input,
    pub(in crate::commands) on_hangup: OnHangup,
    /// Whether the process ran before we connected.
    pub(in crate::commands) has_started: bool,
}

/// Connects a process to our standard streams. Returns the process's exit code.
pub(in crate::commands) async fn run(exec: Exec, session: Session) -> anyhow::Result<ExitCode> {
    let Exec { input, mut output } = exec;
    let raw = session.has_terminal.then(RawTerminal::enter).flatten();
    let (tasks, quit) = input::forward(input, session)?;
    let mut has_started = session.has_started;
    let outcome = tokio::select! {
        outcome = copy(&mut output, &mut has_started) => outcome,
        Ok(Quit) = quit => Ok(ExitCode::from(INTERRUPTED)),
    };
    tasks.abort();
    // Restore the terminal before printing: in raw mode a newline does not return to the first column.
    drop(raw);
    outcome.or_else(|error| exit_code_of_error(error, has_started))
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
            None => bail!("the connection ended before the command's exit code arrived"),
        };
        match written {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                return Ok(ExitCode::from(BROKEN_PIPE));
            }
            other => other.context("writing the command's output")?,
        }
    }
}

/// Reports a lost connection: at once on a terminal, otherwise after [`REPORT_AFTER`].
#[derive(Debug, Default)]
struct Outage {
    is_active: bool,
    is_reported: bool,
}

impl Outage {
    fn begin(&mut self) {
        self.is_active = true;
        if std::io::stderr().is_terminal() {
            self.report();
        }
    }

    fn report(&mut self) {
        self.is_reported = true;
        notice("connection lost; reconnecting…");
    }

    fn end(&mut self, missing: u64) {
        if self.is_reported {
            notice("reconnected");
        }
        if missing > 0 {
            notice(&format!(
                "{missing} bytes of output were lost while disconnected"
            ));
        }
        *self = Self::default();
    }

    /// Waits for the next event.
    async fn watch<T>(&mut self, next: impl Future<Output = T>) -> T {
        let mut next = std::pin::pin!(next);
        if self.is_active && !self.is_reported {
            match tokio::time::timeout(REPORT_AFTER, &mut next).await {
                Ok(done) => return done,
                Err(_) => self.report(),
            }
        }
        next.await
    }
}

/// Prints a message between lines of output. On a raw terminal, a newline does not return to the first column.
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

fn exit_code_of_error(error: anyhow::Error, has_started: bool) -> anyhow::Result<ExitCode> {
    let error_code = error.downcast_ref().and_then(ClientError::code);
    let code = match error_code {
        Some("timed_out") => TIMED_OUT,
        // The sandbox exists, or connecting would have failed. So the command, the user or the directory is wrong.
        Some("invalid" | "not_found" | "file_not_found") if !has_started => NOT_STARTED,
        _ => return Err(error),
    };
    output::error(&error);
    Ok(ExitCode::from(code))
}

/// The command's exit code as our exit code.
pub(in crate::commands) fn exit_code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code & 0xff).unwrap_or(u8::MAX))
}
