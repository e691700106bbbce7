//! `sandyard cp`.

mod download;
mod location;
mod pack;
mod progress;
mod upload;

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use serde_json::json;

use crate::global::Global;
use crate::output::{self, Format};
use location::Location;

#[derive(Debug, Args)]
#[command(
    after_help = "One of SOURCE and TARGET is in a sandbox, written as ID:PATH; a relative PATH starts from the home directory. Directories are \
copied recursively. If TARGET is an existing directory, the copy is created in it. - means standard input or output. To name \
a local file with a colon, start it with ./, as in ./a:b.

Examples:
  sandyard cp main.py ID:main.py
  sandyard cp ID:/home/user/out ./results
  sandyard cp ID:report.csv - | head"
)]
pub(crate) struct CpArgs {
    /// File or directory to copy
    #[arg(value_name = "SOURCE")]
    from: Location,
    /// Where to copy it
    #[arg(value_name = "TARGET")]
    to: Location,
    /// User in the sandbox that owns new files and whose home directory relative paths start from [default: user]
    #[arg(long, short, value_name = "NAME")]
    user: Option<String>,
    /// Do not show progress
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    format: Format,
}

/// Result of a copy.
#[derive(Debug)]
struct Copied {
    /// Where the copy is.
    to: String,
    /// Number of bytes copied.
    bytes: u64,
}

/// Copies a file or directory.
pub(crate) async fn cp(global: &Global, args: CpArgs) -> anyhow::Result<ExitCode> {
    let mut client = global.client()?;
    if let Some(user) = &args.user {
        client = client.with_file_user(user);
    }
    let progress = progress::Progress::new(!args.quiet && !args.format.json);
    let is_to_stdout = args.to == Location::Stdio;
    let copied = match (args.from, args.to) {
        (Location::Sandbox { id, path }, Location::Sandbox { .. }) => {
            bail!("source and target are both in sandboxes: copy `{id}:{path}` to this host first")
        }
        (from, Location::Sandbox { id, path }) => {
            upload::upload(&client, &progress, from, &id, &path).await?
        }
        (Location::Sandbox { id, path }, to) => {
            download::download(&client, &progress, &id, &path, to).await?
        }
        _ => bail!("neither source nor target is in a sandbox: write one as ID:PATH"),
    };
    progress.finish();
    if args.format.json && !is_to_stdout {
        output::json(&json!({ "path": copied.to, "bytes": copied.bytes }))?;
    }
    Ok(ExitCode::SUCCESS)
}
