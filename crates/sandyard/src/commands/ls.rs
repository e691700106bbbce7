//! `sandyard ls`: which sandboxes there are.

use std::process::ExitCode;

use clap::Args;
use sandyard_client::{ListFilter, SandboxInfo};

use super::local;
use crate::global::Global;
use crate::output::{self, Cell, Format};

/// What a sandbox's status can be, and what a stopped one is looked for by.
const STATUSES: [&str; 6] = [
    "initializing",
    "running",
    "paused",
    "stopped",
    "error",
    "deleted",
];

#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// Only those in this status; `stopped` is `paused`, and `deleted` ones are listed only so
    #[arg(long, value_name = "STATUS", value_parser = STATUSES, conflicts_with = "local")]
    status: Option<String>,
    /// Only those of this user; for admins
    #[arg(long, value_name = "NAME", conflicts_with = "local")]
    user: Option<String>,
    /// Print ids and nothing else
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
    /// Ask the engine of this data directory instead of a server: also shows what `sandyard run` uses
    #[arg(long)]
    local: bool,
    #[command(flatten)]
    format: Format,
}

/// Lists sandboxes.
pub(crate) async fn ls(global: &Global, args: &LsArgs) -> anyhow::Result<ExitCode> {
    if args.local {
        return local::ls(global, args.format, args.quiet).await;
    }
    let filter = ListFilter {
        owner: args.user.clone(),
        status: args.status.as_deref().map(as_server_says),
        ..ListFilter::default()
    };
    let sandboxes = global.client()?.list_all(&filter).await?;
    if args.format.json {
        output::json(&sandboxes)?;
    } else if args.quiet {
        for sandbox in &sandboxes {
            output::line(&sandbox.sandbox_id);
        }
    } else {
        let rows: Vec<Vec<Cell>> = sandboxes.iter().map(row).collect();
        output::table(
            &[
                "ID", "NAME", "STATUS", "PROVIDER", "TEMPLATE", "USER", "CREATED", "EXPIRES",
            ],
            &rows,
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// The server has one word for both that do not run and wake by themselves.
fn as_server_says(status: &str) -> String {
    if status == "stopped" {
        "paused"
    } else {
        status
    }
    .to_owned()
}

fn row(sandbox: &SandboxInfo) -> Vec<Cell> {
    let text = |text: &Option<String>| Cell::from(text.as_deref().unwrap_or_default());
    vec![
        Cell::from(&sandbox.sandbox_id),
        text(&sandbox.alias),
        Cell::status(&sandbox.status),
        Cell::from(&sandbox.provider),
        Cell::from(&sandbox.template_id),
        Cell::from(&sandbox.user_id),
        text(&sandbox.created_at),
        text(&sandbox.expires_at),
    ]
}
