//! `sandyard rm` and `sandyard prune`.

use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;
use sandyard_client::{Client, ListFilter, SandboxInfo};

use super::args::seconds;
use super::lifecycle::{ForceArgs, apply_to_each};
use super::local;
use super::prompt::confirm;
use super::sandbox_text::status;
use crate::global::Global;
use crate::output::{self, Format};

/// Number of names in a question.
const MAX_NAMED: usize = 5;

#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// IDs or names of the sandboxes
    #[arg(required_unless_present = "all", value_name = "ID")]
    ids: Vec<String>,
    /// Delete all your sandboxes; with --local every sandbox of the engine, also the pre-created ones
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    #[command(flatten)]
    bulk: BulkArgs,
    #[command(flatten)]
    force: ForceArgs,
    /// Use the engine of this data directory instead of a server, for sandboxes of `sandyard run`
    #[arg(long)]
    local: bool,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Also delete paused sandboxes
    #[arg(long)]
    paused: bool,
    /// Delete only sandboxes that were last used before this time, for example 12h or 3d
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    older: Option<u64>,
    #[command(flatten)]
    bulk: BulkArgs,
    #[command(flatten)]
    format: Format,
}

/// How far a deletion of several sandboxes goes.
#[derive(Debug, Args)]
struct BulkArgs {
    /// Include sandboxes of other users (admins only)
    #[arg(long = "everyone")]
    all_users: bool,
    /// Do not ask for confirmation on a terminal
    #[arg(long, short)]
    yes: bool,
}

/// Deletes each sandbox and prints its id. Continues after a failure.
pub(crate) async fn rm(global: &Global, args: &RmArgs) -> anyhow::Result<ExitCode> {
    let ids = (!args.all).then(|| args.ids.clone());
    if args.local {
        return local::rm(global, ids, args.format).await;
    }
    let client = global.client()?;
    match ids {
        Some(ids) => delete(&client, &ids, args.force, args.format).await,
        None => delete_chosen(&client, &args.bulk, args.format, |_| true).await,
    }
}

/// Deletes sandboxes that nobody needs, and prints their ids.
pub(crate) async fn prune(global: &Global, args: &PruneArgs) -> anyhow::Result<ExitCode> {
    let now = Timestamp::now();
    let is_old = |sandbox: &SandboxInfo| {
        let used_at = sandbox
            .other
            .get("last_activity_at")
            .and_then(|at| at.as_str());
        let used_at: Option<Timestamp> = used_at.and_then(|at| at.parse().ok());
        let age = used_at.map(|at| now.as_second() - at.as_second());
        args.older
            .is_none_or(|older| age.is_some_and(|age| age >= older.cast_signed()))
    };
    let is_wanted = |sandbox: &SandboxInfo| match status(sandbox) {
        "stopped" | "error" => is_old(sandbox),
        "paused" => args.paused && is_old(sandbox),
        _ => false,
    };
    delete_chosen(&global.client()?, &args.bulk, args.format, is_wanted).await
}

/// Deletes the chosen sandboxes of the caller, or of all users. Asks on a terminal.
async fn delete_chosen(
    client: &Client,
    bulk: &BulkArgs,
    format: Format,
    is_wanted: impl Fn(&SandboxInfo) -> bool,
) -> anyhow::Result<ExitCode> {
    let user = client.server_info().await?.user;
    let mut chosen = client.list_all(&ListFilter::default()).await?;
    chosen.retain(&is_wanted);
    let found = chosen.len();
    // An older server does not say who the caller is.
    if !bulk.all_users && !user.is_empty() {
        chosen.retain(|sandbox| sandbox.user_id == user);
    }
    let others = found - chosen.len();
    if others > 0 {
        output::note(format!(
            "note: {others} of other users are kept; --everyone includes them"
        ));
    }
    if !bulk.yes && !chosen.is_empty() && !confirm(&question(&chosen))? {
        return Ok(ExitCode::FAILURE);
    }
    let ids: Vec<String> = chosen
        .into_iter()
        .map(|sandbox| sandbox.sandbox_id)
        .collect();
    delete(client, &ids, ForceArgs::default(), format).await
}

fn question(sandboxes: &[SandboxInfo]) -> String {
    let name = |sandbox: &SandboxInfo| {
        let name = sandbox.alias.clone();
        name.unwrap_or_else(|| sandbox.sandbox_id.clone())
    };
    let mut names: Vec<String> = sandboxes.iter().take(MAX_NAMED).map(name).collect();
    if sandboxes.len() > MAX_NAMED {
        names.push("…".to_owned());
    }
    let names = names.join(", ");
    match sandboxes.len() {
        1 => format!("Delete 1 sandbox ({names})?"),
        count => format!("Delete {count} sandboxes ({names})?"),
    }
}

async fn delete(
    client: &Client,
    ids: &[String],
    force: ForceArgs,
    format: Format,
) -> anyhow::Result<ExitCode> {
    apply_to_each(ids, format, async |id| {
        force.outcome(client.delete(id).await.map(drop))?;
        Ok((id.to_owned(), id.to_owned()))
    })
    .await
}
