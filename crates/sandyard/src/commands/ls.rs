//! `sandyard ls`.

mod select;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use sandyard_client::{Client, ListFilter, SandboxInfo};

use self::select::{FIELDS, Filter, field, format_line};
use super::local;
use super::sandbox_text::{next_change, status};
use crate::global::Global;
use crate::output::{self, Cell, Format, terminal_width};

/// Values of --status.
const STATUSES: [&str; 6] = [
    "initializing",
    "running",
    "paused",
    "stopped",
    "error",
    "deleted",
];
/// The first columns are shown on a terminal of any width.
const HEADINGS: [&str; 8] = [
    "ID", "NAME", "STATUS", "CREATED", "EXPIRES", "TEMPLATE", "USER", "PROVIDER",
];
const REQUIRED: usize = 5;
/// Time between two updates of --watch.
const REFRESH: Duration = Duration::from_secs(2);

#[derive(Debug, Default, Args)]
#[command(
    after_help = "Fields of --filter, --sort and --format: id, name, status, user, template, provider, created, expires and metadata.NAME. \
In the value of a filter, * stands for any text. --format also takes every field of the JSON output.

Examples:
  sandyard ls --filter status=paused --filter 'name=build-*'
  sandyard ls --sort name --format '{id} {name} {metadata.ticket}'
  sandyard rm $(sandyard ls --quiet --filter status=error)"
)]
pub(crate) struct LsArgs {
    /// Show only sandboxes with this status. Deleted sandboxes are shown only with `deleted`
    #[arg(long, value_name = "STATUS", value_parser = STATUSES, conflicts_with = "local")]
    status: Option<String>,
    /// Show only sandboxes of this user (admins only)
    #[arg(long, value_name = "NAME", conflicts_with = "local")]
    user: Option<String>,
    /// Show only sandboxes with this value of a field; repeatable
    #[arg(
        long = "filter",
        short,
        value_name = "FIELD=VALUE",
        conflicts_with = "local"
    )]
    filters: Vec<Filter>,
    /// Sort by this field [default: newest first]
    #[arg(long, value_name = "FIELD", value_parser = FIELDS, conflicts_with = "local")]
    sort: Option<String>,
    /// Print one line for each sandbox, for example '{id} {name}'
    #[arg(long = "format", value_name = "TEXT", conflicts_with_all = ["local", "json", "quiet"])]
    line_format: Option<String>,
    /// Show the list until Ctrl-C and keep it up to date
    #[arg(long, short, conflicts_with_all = ["local", "json"])]
    watch: bool,
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
    let client = global.client()?;
    if args.format.json {
        output::json(&args.fetch(&client).await?)?;
        return Ok(ExitCode::SUCCESS);
    }
    loop {
        let lines = args.lines(&args.fetch(&client).await?);
        if args.watch && terminal_width().is_some() {
            // Clear the screen.
            output::line("\x1b[H\x1b[2J");
        }
        output::lines(&lines);
        if !args.watch || !output::is_writable() {
            return Ok(ExitCode::SUCCESS);
        }
        tokio::time::sleep(REFRESH).await;
    }
}

impl LsArgs {
    /// The whole list.
    pub(super) fn with_format(format: Format) -> Self {
        Self {
            format,
            ..Self::default()
        }
    }

    async fn fetch(&self, client: &Client) -> anyhow::Result<Vec<SandboxInfo>> {
        let requested = self.status.as_deref();
        let from_filter = || self.filters.iter().find_map(Filter::status);
        let filter = ListFilter {
            owner: self.user.clone(),
            status: requested.or_else(from_filter).map(|status| match status {
                // The server lists both under one status.
                "stopped" => "paused".to_owned(),
                status => status.to_owned(),
            }),
            ..ListFilter::default()
        };
        let mut sandboxes = client.list_all(&filter).await?;
        sandboxes.retain(|sandbox| {
            requested.is_none_or(|requested| requested == status(sandbox))
                && self.filters.iter().all(|filter| filter.matches(sandbox))
        });
        if let Some(name) = &self.sort {
            sandboxes.sort_by_cached_key(|sandbox| field(sandbox, name));
        }
        Ok(sandboxes)
    }

    fn lines(&self, sandboxes: &[SandboxInfo]) -> Vec<String> {
        if self.quiet {
            return sandboxes.iter().map(|it| it.sandbox_id.clone()).collect();
        }
        if let Some(format) = &self.line_format {
            let lines = sandboxes.iter().map(|it| format_line(format, it));
            return lines.collect();
        }
        if sandboxes.is_empty() && terminal_width().is_some() {
            let is_filtered =
                self.status.is_some() || self.user.is_some() || !self.filters.is_empty();
            return vec![match is_filtered {
                true => "No such sandboxes.".to_owned(),
                false => "No sandboxes. `sandyard create` creates one.".to_owned(),
            }];
        }
        let rows: Vec<Vec<Cell>> = sandboxes.iter().map(row).collect();
        output::fitted_lines(&HEADINGS, REQUIRED, &rows)
    }
}

fn row(sandbox: &SandboxInfo) -> Vec<Cell> {
    let created_at = sandbox.created_at.as_deref().unwrap_or_default();
    vec![
        Cell::from(&sandbox.sandbox_id),
        Cell::from(sandbox.alias.as_deref().unwrap_or_default()),
        Cell::status(status(sandbox)),
        Cell::from(output::ago(created_at)),
        Cell::from(next_change(sandbox)),
        Cell::from(&sandbox.template_id),
        Cell::from(&sandbox.user_id),
        Cell::from(&sandbox.provider),
    ]
}
