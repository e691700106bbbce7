//! `sandyard health`, `audit`, `node` and `timer`, for operators of a server.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use sandyard_client::{AuditFilter, Health, Provider};
use serde_json::{Value, json};

use super::render::{event_time, field_text};
use crate::global::Global;
use crate::output::{self, Cell, Format};

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
    match format.json {
        true => output::json(&health)?,
        false => print_health(&health),
    }
    Ok(match health.status.as_str() {
        "healthy" | "degraded" => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

fn print_health(health: &Health) {
    let other = |name| field_text(&health.other, name);
    let counts = health.other.get("sandboxes").and_then(Value::as_object);
    let counts = counts.into_iter().flatten();
    let counts: Vec<String> = counts
        .filter(|(status, _)| *status != "deleted")
        .map(|(status, count)| format!("{count} {status}"))
        .collect();
    let mut fields = vec![("status", Cell::status(&health.status))];
    let problems = other("problems");
    if !problems.is_empty() {
        fields.push(("problems", Cell::from(problems)));
    }
    fields.extend([
        ("version", Cell::from(&health.version)),
        ("store", Cell::from(other("store"))),
        ("timers", Cell::from(other("timers"))),
        ("sandboxes", Cell::from(counts.join(", "))),
    ]);
    output::fields(&fields);
    output::line("");
    let rows: Vec<Vec<Cell>> = health.providers.iter().map(provider_row).collect();
    output::table(&["PROVIDER", "STATUS", "SINCE", "UNSUPPORTED"], &rows);
}

fn provider_row(provider: &Provider) -> Vec<Cell> {
    let missing = provider.capabilities.iter().filter(|(_, has)| !**has);
    let missing: Vec<&str> = missing.map(|(name, _)| name.as_str()).collect();
    vec![
        Cell::from(&provider.name),
        Cell::status(&provider.status),
        Cell::from(output::ago(provider.since.as_deref().unwrap_or_default())),
        Cell::from(missing.join(", ")),
    ]
}

/// Prints the audit log.
pub(crate) async fn audit(global: &Global, args: &AuditArgs) -> anyhow::Result<ExitCode> {
    let filter = AuditFilter {
        actor: args.user.clone(),
        limit: Some(args.tail),
    };
    let entries = global.client()?.audit(&filter).await?;
    let headings = ["TIME", "ACTOR", "ACTION", "TARGET", "STATUS", "ADDRESS"];
    args.format.print_fitted(&headings, 5, &entries, |entry| {
        vec![
            Cell::from(output::clock_time(&event_time(&entry.other))),
            Cell::from(&entry.actor),
            Cell::from(action_text(&entry.action)),
            Cell::from(entry.target.as_deref().unwrap_or_default()),
            Cell::from(entry.status.to_string()),
            Cell::from(field_text(&entry.other, "address")),
        ]
    })
}

/// An operation's ID as people say it; several routes of one operation have the same text.
fn action_text(action: &str) -> String {
    let action = action
        .split_once("_by_")
        .map_or(action, |(action, _)| action);
    action.replace('_', " ")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_words() {
        assert_eq!(action_text("run_command_by_run_cmd"), "run command");
        assert_eq!(action_text("stop_sandbox"), "stop sandbox");
    }
}
