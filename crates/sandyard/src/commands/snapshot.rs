//! `sandyard snapshot`, `fork` and `diff`: commands about the files of a sandbox as a whole.

use std::process::ExitCode;

use clap::Args;
use sandyard_client::{Change, ForkSandbox};

use super::args::{pair, seconds};
use super::info::SandboxArgs;
use crate::global::Global;
use crate::output::{self, Format};

#[derive(Debug, Args)]
#[command(
    after_help = "A snapshot is a template of yours: `sandyard template ls` lists it, `sandyard template rm` deletes it. Memory and processes are \
not saved.

Examples:
  sandyard snapshot build tools-installed
  sandyard create --template tools-installed"
)]
pub(crate) struct SnapshotArgs {
    /// ID or name of the sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// Name of the new template
    name: String,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Prints the ID of the copy. Memory and processes are not copied.

Examples:
  sandyard fork build
  sandyard fork build --env BRANCH=next --timeout 2h"
)]
pub(crate) struct ForkArgs {
    /// ID or name of the sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// Environment variable of the copy; repeatable. Replaces all variables of the original
    #[arg(long, short, value_name = "NAME=VALUE", value_parser = pair)]
    env: Vec<(String, String)>,
    /// Metadata of the copy; repeatable. Replaces all metadata of the original
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    metadata: Vec<(String, String)>,
    /// Idle timeout of the copy, for example 90s, 30m or 2h
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    timeout: Option<u64>,
    #[command(flatten)]
    format: Format,
}

/// Saves a sandbox's files as a template and prints the template's name.
pub(crate) async fn snapshot(global: &Global, args: &SnapshotArgs) -> anyhow::Result<ExitCode> {
    let template = global.client()?.snapshot(&args.id, &args.name).await?;
    args.format.print(&template, &template.name)
}

/// Creates a sandbox from the files of another one and prints its id.
pub(crate) async fn fork(global: &Global, args: ForkArgs) -> anyhow::Result<ExitCode> {
    let unless_empty =
        |pairs: Vec<(String, String)>| (!pairs.is_empty()).then(|| pairs.into_iter().collect());
    let request = ForkSandbox {
        env: unless_empty(args.env),
        metadata: unless_empty(args.metadata),
        timeout: args.timeout,
    };
    let sandbox = global.client()?.fork(&args.id, &request).await?;
    args.format.print(&sandbox, &sandbox.sandbox_id)
}

/// Lists the files that changed since the template: `A` added, `M` modified, `D` deleted.
pub(crate) async fn diff(global: &Global, args: &SandboxArgs) -> anyhow::Result<ExitCode> {
    let changes = global.client()?.diff(&args.id).await?;
    if args.format.json {
        output::json(&changes)?;
        return Ok(ExitCode::SUCCESS);
    }
    for change in &changes {
        let path = output::escape_control(&change.path);
        output::line(format!("{} {path}", letter(change)));
    }
    Ok(ExitCode::SUCCESS)
}

fn letter(change: &Change) -> char {
    match change.kind.as_str() {
        "added" => 'A',
        "modified" => 'M',
        "deleted" => 'D',
        _ => '?',
    }
}
