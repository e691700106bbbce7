//! `sandyard ps`, `kill` and `wait`: the commands that run in a sandbox.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use sandyard_client::ExecEvent;

use super::args::seconds;
use super::exec::session::exit_code;
use super::exit_code::TIMED_OUT;
use super::ls::{LsArgs, ls};
use super::sandbox_text::status;
use crate::global::Global;
use crate::output::{self, Cell, Format};

/// Time between two checks of the status of a sandbox.
const POLL: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
#[command(
    after_help = "Lists the commands that were started with `exec`, `shell` or an API and still run. Programs that these started are listed \
by `sandyard exec ID -- ps aux`. Without ID, `ps` is `sandyard ls`."
)]
pub(crate) struct PsArgs {
    /// ID or name of the sandbox
    #[arg(value_name = "ID")]
    id: Option<String>,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Args)]
#[command(
    after_help = "`sandyard stop ID` ends all processes and keeps the files; `sandyard rm ID` deletes the sandbox."
)]
pub(crate) struct KillArgs {
    /// ID or name of the sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// Process IDs, as `sandyard ps ID` prints them
    #[arg(value_name = "PID", required = true)]
    pids: Vec<u32>,
    /// Signal to send, for example TERM or INT; KILL also ends the processes that the command started
    #[arg(long, short, value_name = "SIGNAL", default_value = "KILL")]
    signal: String,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Exit code: with PID, the exit code of the process; 124 when --timeout is over.

Examples:
  sandyard wait ID 12         # until process 12 has ended
  sandyard wait ID --for paused --timeout 10m"
)]
pub(crate) struct WaitArgs {
    /// ID or name of the sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// Wait for this process to end
    #[arg(value_name = "PID", conflicts_with = "expected")]
    pid: Option<u32>,
    /// Wait until the sandbox has this status [default: any but running]
    #[arg(long = "for", value_name = "STATUS", value_parser = ["running", "paused", "stopped", "error", "deleted"])]
    expected: Option<String>,
    /// Give up after this time, for example 90s or 10m [default: never]
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    timeout: Option<u64>,
}

/// Lists the running commands of a sandbox; without one, the sandboxes.
pub(crate) async fn ps(global: &Global, args: &PsArgs) -> anyhow::Result<ExitCode> {
    let Some(id) = &args.id else {
        return ls(global, &LsArgs::with_format(args.format)).await;
    };
    let processes = global.client()?.processes(id).await?;
    if args.format.json {
        output::json(&processes)?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<Cell>> = processes
        .iter()
        .map(|process| {
            let parts = std::iter::once(&process.command).chain(&process.args);
            let parts: Vec<&str> = parts.map(String::as_str).collect();
            vec![
                Cell::from(process.pid.to_string()),
                Cell::from(parts.join(" ")),
            ]
        })
        .collect();
    output::lines(&output::fitted_lines(&["PID", "COMMAND"], 2, &rows));
    Ok(ExitCode::SUCCESS)
}

/// Sends a signal to commands of a sandbox.
pub(crate) async fn kill(global: &Global, args: &KillArgs) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    for pid in &args.pids {
        client.kill_process(&args.id, *pid, &args.signal).await?;
        output::line(pid.to_string());
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits for a process or a status.
pub(crate) async fn wait(global: &Global, args: &WaitArgs) -> anyhow::Result<ExitCode> {
    let waiting = async {
        match args.pid {
            Some(pid) => wait_for_process(global, &args.id, pid).await,
            None => wait_for_status(global, args).await,
        }
    };
    match args.timeout {
        None => waiting.await,
        Some(seconds) => {
            let outcome = tokio::time::timeout(Duration::from_secs(seconds), waiting).await;
            outcome.unwrap_or_else(|_| {
                output::note("error: timed out");
                Ok(ExitCode::from(TIMED_OUT))
            })
        }
    }
}

async fn wait_for_process(global: &Global, id: &str, pid: u32) -> anyhow::Result<ExitCode> {
    let mut attached = global.client()?.attach(id, pid).await?;
    while let Some(event) = attached.exec.output.next().await? {
        if let ExecEvent::Exit { exit_code: code } = event {
            return Ok(exit_code(code));
        }
    }
    bail!("the connection ended before the exit code arrived")
}

async fn wait_for_status(global: &Global, args: &WaitArgs) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    // A name is free again after the deletion.
    let id = match client.inspect(&args.id).await {
        Ok(sandbox) => sandbox.sandbox_id,
        // It was deleted before this program could ask.
        Err(error)
            if error.status() == Some(404) && args.expected.as_deref() == Some("deleted") =>
        {
            output::line("deleted");
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => return Err(error.into()),
    };
    loop {
        let started_at = Instant::now();
        let sandbox = client.inspect(&id).await?;
        let now = status(&sandbox);
        let is_reached = match args.expected.as_deref() {
            Some(expected) => expected == now,
            None => !matches!(now, "running" | "initializing"),
        };
        if is_reached {
            output::line(now);
            return Ok(ExitCode::SUCCESS);
        }
        if matches!(now, "deleted" | "error") {
            bail!(
                "the sandbox is `{now}` and cannot become `{}`",
                args.expected.as_deref().unwrap_or_default()
            );
        }
        tokio::time::sleep(POLL.saturating_sub(started_at.elapsed())).await;
    }
}
