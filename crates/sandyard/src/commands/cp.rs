//! `sandyard cp`: files and folders in and out of a sandbox.

mod download;
mod pack;
mod place;
mod progress;
mod upload;

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use serde_json::json;

use crate::global::Global;
use crate::output::{self, Format};
use place::Place;

#[derive(Debug, Args)]
#[command(
    after_help = "One of the two is in a sandbox, written ID:PATH; a relative PATH counts from the home inside. A folder is
copied with all that is in it. If the target is a folder, the copy goes into it. - is standard input or output.
A file of this host with a colon in its name is written with a slash: ./a:b.

Examples:
  sandyard cp main.py ID:main.py
  sandyard cp ID:/home/user/out ./results
  sandyard cp ID:report.csv - | head"
)]
pub(crate) struct CpArgs {
    /// What to copy
    #[arg(value_name = "SOURCE")]
    from: Place,
    /// Where to
    #[arg(value_name = "TARGET")]
    to: Place,
    /// The user inside to whom copies belong, and whose home relative paths count from [default: user]
    #[arg(long, short, value_name = "NAME")]
    user: Option<String>,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    format: Format,
}

/// What was copied, for programs.
#[derive(Debug)]
struct Copied {
    to: String,
    bytes: u64,
}

/// Copies a file or folder.
pub(crate) async fn cp(global: &Global, args: CpArgs) -> anyhow::Result<ExitCode> {
    let mut client = global.client()?;
    if let Some(user) = &args.user {
        client = client.with_file_user(user);
    }
    let is_shown = !args.quiet && !args.format.json;
    let progress = progress::Progress::new(is_shown);
    let is_to_stdout = args.to == Place::Standard;
    let copied = match (args.from, args.to) {
        (Place::Sandbox { id, path }, Place::Sandbox { .. }) => {
            bail!("both are in sandboxes: copy `{id}:{path}` to this host first")
        }
        (from, Place::Sandbox { id, path }) => {
            upload::upload(&client, &progress, from, &id, &path).await?
        }
        (Place::Sandbox { id, path }, to) => {
            download::download(&client, &progress, &id, &path, to).await?
        }
        _ => bail!("neither is in a sandbox: write one as ID:PATH"),
    };
    progress.finish();
    if args.format.json && !is_to_stdout {
        output::json(&json!({ "path": copied.to, "bytes": copied.bytes }))?;
    }
    Ok(ExitCode::SUCCESS)
}
