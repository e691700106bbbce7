//! `sandyard health`, `audit`, `node` and `timer`: for those who keep a server running.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use sandyard_client::{AuditEntry, AuditFilter, DeadTimer, Node};
use serde_json::json;

use super::show::{self, text_of, time_of};
use crate::global::Global;
use crate::output::{self, Cell, Format};

#[derive(Debug, Args)]
pub(crate) struct HealthArgs {
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Only what this user did
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// How many of the newest entries
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 100)]
    tail: usize,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// List the servers that share the store
    Ls {
        #[command(flatten)]
        format: Format,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum TimerCommand {
    /// List timers that were given up
    Ls {
        #[command(flatten)]
        format: Format,
    },
    /// Give a timer another chance
    Revive {
        /// The sandbox it is about
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        format: Format,
    },
}

/// Prints how the server is. Exits with 1 when it cannot do its work; one of several providers missing is no reason.
pub(crate) async fn health(global: &Global, args: &HealthArgs) -> anyhow::Result<ExitCode> {
    let health = global.client()?.health().await?;
    match args.format.json {
        true => output::json(&health)?,
        false => show::whole(&health)?,
    }
    Ok(match health.status.as_str() {
        "healthy" | "degraded" => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Prints who did what.
pub(crate) async fn audit(global: &Global, args: &AuditArgs) -> anyhow::Result<ExitCode> {
    let filter = AuditFilter {
        actor: args.user.clone(),
        limit: Some(args.tail),
    };
    let entries = global.client()?.audit(&filter).await?;
    if args.format.json {
        output::json(&entries)?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |entry: &AuditEntry| {
        vec![
            Cell::from(time_of(&entry.other)),
            Cell::from(&entry.actor),
            Cell::from(&entry.action),
            Cell::from(entry.target.as_deref().unwrap_or_default()),
            Cell::from(entry.status.to_string()),
            Cell::from(text_of(&entry.other, "address")),
        ]
    };
    let rows: Vec<Vec<Cell>> = entries.iter().map(row).collect();
    output::table(&["AT", "WHO", "WHAT", "TO", "STATUS", "FROM"], &rows);
    Ok(ExitCode::SUCCESS)
}

/// Lists servers.
pub(crate) async fn node(global: &Global, command: NodeCommand) -> anyhow::Result<ExitCode> {
    let NodeCommand::Ls { format } = command;
    let nodes = global.client()?.nodes().await?;
    if format.json {
        output::json(&nodes)?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |node: &Node| {
        let other = |name| Cell::from(text_of(&node.other, name));
        vec![
            Cell::from(&node.id),
            Cell::from(&node.version),
            other("url"),
            other("started_at"),
            other("seen_at"),
        ]
    };
    let rows: Vec<Vec<Cell>> = nodes.iter().map(row).collect();
    output::table(&["ID", "VERSION", "URL", "STARTED", "SEEN"], &rows);
    Ok(ExitCode::SUCCESS)
}

/// Lists timers that were given up, or revives one.
pub(crate) async fn timer(global: &Global, command: TimerCommand) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    let format = match command {
        TimerCommand::Ls { format } => format,
        TimerCommand::Revive { id, format } => {
            client.revive_timer(&id).await?;
            match format.json {
                true => output::json(&json!({ "sandbox_id": id }))?,
                false => output::line(id),
            }
            return Ok(ExitCode::SUCCESS);
        }
    };
    let timers = client.dead_timers().await?;
    if format.json {
        output::json(&timers)?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |timer: &DeadTimer| {
        vec![
            Cell::from(&timer.subject),
            Cell::from(timer.attempts.to_string()),
            Cell::from(timer.last_error.as_deref().unwrap_or_default()),
        ]
    };
    let rows: Vec<Vec<Cell>> = timers.iter().map(row).collect();
    output::table(&["SANDBOX", "TRIES", "LAST ERROR"], &rows);
    Ok(ExitCode::SUCCESS)
}
