//! Output of the command as ours, until it ends.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use sandyard_client::{Client, ClientError, Exec, ExecEvent, ExecOutput};
use tokio::io::AsyncWriteExt;

use super::super::terminal::RawTerminal;
use super::input::{GaveUp, Input};
use super::{ExecArgs, input};
use crate::output;

/// Exit code when the command ran longer than allowed, as `timeout(1)` has it.
pub(super) const TIMED_OUT: u8 = 124;
/// Exit code when there is no such command, user or directory, as shells have it.
const NOT_STARTED: u8 = 127;
/// Exit code when our own reader has gone, as shells name the signal it would have been.
const BROKEN_PIPE: u8 = 128 + 13;
/// Exit code when the user interrupted us.
const INTERRUPTED: u8 = 128 + 2;

/// Runs the command with our standard streams.
pub(super) async fn attach(client: &Client, args: &ExecArgs) -> anyhow::Result<ExitCode> {
    let Exec { input, mut output } = client.exec(&args.id, &args.exec_request()).await?;
    let raw = if args.tty { RawTerminal::enter() } else { None };
    let wants = match (args.tty, args.interactive) {
        (true, _) => Input::Terminal,
        (false, true) => Input::Pipe,
        (false, false) => Input::Nothing,
    };
    let (tasks, given_up) = input::forward(input, wants)?;
    let mut has_started = false;
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
    loop {
        let written = match events.next().await? {
            Some(ExecEvent::Start { .. }) => {
                *has_started = true;
                Ok(())
            }
            Some(ExecEvent::Stdout(bytes)) => write(&mut stdout, &bytes).await,
            Some(ExecEvent::Stderr(bytes)) => write(&mut stderr, &bytes).await,
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
pub(super) fn exit_code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code & 0xff).unwrap_or(u8::MAX))
}
