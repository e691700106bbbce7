//! `sandyard snapshot`, `fork` and `diff`: a sandbox's files, kept, doubled, compared.

use std::process::ExitCode;

use clap::Args;
use sandyard_client::{Change, ForkSandbox};

use super::args::{pair, seconds};
use crate::global::Global;
use crate::output::{self, Format};

#[derive(Debug, Args)]
pub(crate) struct SnapshotArgs {
    /// Id or name of a sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// Name of the template to be made
    name: String,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    /// Id or name of a sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// Variables of the copy, in place of the original's; may be repeated
    #[arg(long, short, value_name = "NAME=VALUE", value_parser = pair)]
    env: Vec<(String, String)>,
    /// What to remember with the copy, in place of the original's; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    metadata: Vec<(String, String)>,
    /// How long the copy lives without activity, like 90, 30m or 2h
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    timeout: Option<u64>,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// Id or name of a sandbox
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    format: Format,
}

/// Keeps a sandbox's files as a template and prints its name.
pub(crate) async fn snapshot(global: &Global, args: &SnapshotArgs) -> anyhow::Result<ExitCode> {
    let template = global.client()?.snapshot(&args.id, &args.name).await?;
    match args.format.json {
        true => output::json(&template)?,
        false => output::line(&template.name),
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes another sandbox from the files of this one and prints its id.
pub(crate) async fn fork(global: &Global, args: ForkArgs) -> anyhow::Result<ExitCode> {
    let given =
        |pairs: Vec<(String, String)>| (!pairs.is_empty()).then(|| pairs.into_iter().collect());
    let request = ForkSandbox {
        env: given(args.env),
        metadata: given(args.metadata),
        timeout: args.timeout,
    };
    let sandbox = global.client()?.fork(&args.id, &request).await?;
    match args.format.json {
        true => output::json(&sandbox)?,
        false => output::line(&sandbox.sandbox_id),
    }
    Ok(ExitCode::SUCCESS)
}

/// Lists what changed since the template: `A` added, `M` modified, `D` deleted.
pub(crate) async fn diff(global: &Global, args: &DiffArgs) -> anyhow::Result<ExitCode> {
    let changes = global.client()?.diff(&args.id).await?;
    if args.format.json {
        output::json(&changes)?;
    } else {
        for change in &changes {
            output::line(format!(
                "{} {}",
                letter(change),
                output::visible(&change.path)
            ));
        }
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
