//! `sandyard ls`.

use std::process::ExitCode;

use clap::Args;
use sandyard_client::ListFilter;

use super::local;
use crate::global::Global;
use crate::output::{self, Cell, Format};

/// Values of --status: every status of a sandbox, and `stopped` as another name of `paused`.
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
    /// Show only sandboxes with this status; `stopped` means `paused`. Deleted sandboxes are shown only with `deleted`
    #[arg(long, value_name = "STATUS", value_parser = STATUSES, conflicts_with = "local")]
    status: Option<String>,
    /// Show only sandboxes of this user (admins only)
    #[arg(long, value_name = "NAME", conflicts_with = "local")]
    user: Option<String>,
    /// Print only IDs
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
    /// Use the engine of this data directory instead of a server; includes sandboxes of `sandyard run`
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
    let status = args.status.clone().map(|status| match status.as_str() {
        // The server lists both under one status.
        "stopped" => "paused".to_owned(),
        _ => status,
    });
    let filter = ListFilter {
        owner: args.user.clone(),
        status,
        ..ListFilter::default()
    };
    let sandboxes = global.client()?.list_all(&filter).await?;
    if args.quiet {
        for sandbox in &sandboxes {
            output::line(&sandbox.sandbox_id);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let headings = [
        "ID", "NAME", "STATUS", "PROVIDER", "TEMPLATE", "USER", "CREATED", "EXPIRES",
    ];
    args.format.print_table(&headings, &sandboxes, |sandbox| {
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
    })
}
