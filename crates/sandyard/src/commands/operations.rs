//! `sandyard health`, `audit`, `node` and `timer`, for operators of a server.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use sandyard_client::AuditFilter;
use serde_json::json;

use super::render::{event_time, field_text, print_fields};
use crate::global::Global;
use crate::output::{Cell, Format};

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Show only actions of this user
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Number of entries, newest first
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 100)]
    tail: usize,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// List servers
    Ls(Format),
}

#[derive(Debug, Subcommand)]
pub(crate) enum TimerCommand {
    /// List timers that failed too often and no longer run
    Ls(Format),
    /// Run a failed timer again
    Revive {
        /// ID of the sandbox
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        format: Format,
    },
}

/// Prints the server's health. Exits with 1 when the server is unhealthy; a degraded server is not a failure.
pub(crate) async fn health(global: &Global, format: Format) -> anyhow::Result<ExitCode> {
    let health = global.client()?.health().await?;
    print_fields(&health, format)?;
    Ok(match health.status.as_str() {
        "healthy" | "degraded" => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Prints the audit log.
pub(crate) async fn audit(global: &Global, args: &AuditArgs) -> anyhow::Result<ExitCode> {
    let filter = AuditFilter {
        actor: args.user.clone(),
        limit: Some(args.tail),
    };
    let entries = global.client()?.audit(&filter).await?;
    let headings = ["TIME", "ACTOR", "ACTION", "TARGET", "STATUS", "ADDRESS"];
    args.format.print_table(&headings, &entries, |entry| {
        vec![
            Cell::from(event_time(&entry.other)),
            Cell::from(&entry.actor),
            Cell::from(&entry.action),
            Cell::from(entry.target.as_deref().unwrap_or_default()),
            Cell::from(entry.status.to_string()),
            Cell::from(field_text(&entry.other, "address")),
        ]
    })
}

/// Lists servers that share the store.
pub(crate) async fn node(global: &Global, command: NodeCommand) -> anyhow::Result<ExitCode> {
    let NodeCommand::Ls(format) = command;
    let nodes = global.client()?.nodes().await?;
    let headings = ["ID", "VERSION", "URL", "STARTED", "LAST SEEN"];
    format.print_table(&headings, &nodes, |node| {
        let other = |name| Cell::from(field_text(&node.other, name));
        vec![
            Cell::from(&node.id),
            Cell::from(&node.version),
            other("url"),
            other("started_at"),
            other("seen_at"),
        ]
    })
}

/// Lists failed timers, or revives one.
pub(crate) async fn timer(global: &Global, command: TimerCommand) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    match command {
        TimerCommand::Ls(format) => {
            let timers = client.dead_timers().await?;
            format.print_table(&["SANDBOX", "ATTEMPTS", "LAST ERROR"], &timers, |timer| {
                vec![
                    Cell::from(&timer.subject),
                    Cell::from(timer.attempts.to_string()),
                    Cell::from(timer.last_error.as_deref().unwrap_or_default()),
                ]
            })
        }
        TimerCommand::Revive { id, format } => {
            client.revive_timer(&id).await?;
            format.print(&json!({ "sandbox_id": id }), &id)
        }
    }
}
