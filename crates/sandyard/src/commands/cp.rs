//! `sandyard cp`.

mod download;
mod location;
mod pack;
mod progress;
mod transfer;
mod upload;
mod volume;

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use sandyard_client::Client;
use serde_json::json;

use crate::global::Global;
use crate::output::{self, Format};
use location::Location;
pub(crate) use volume::{VolumeCpArgs, copy as copy_volume};

#[derive(Debug, Args)]
#[command(
    override_usage = "sandyard cp [OPTIONS] SOURCE... TARGET",
    after_help = "A path in a sandbox is written as ID:PATH; a relative PATH starts from the home directory. Directories are copied \
recursively. If TARGET is an existing directory, the copy is created in it; with several sources, it must be a directory. - means \
standard input or output. To name a local file with a colon, start it with ./, as in ./a:b.

Examples:
  sandyard cp main.py ID:main.py
  sandyard cp ID:/home/user/out ./results
  sandyard cp *.py ID:src/
  sandyard cp ID:report.csv - | head
  sandyard cp ID:data OTHER:data"
)]
pub(crate) struct CpArgs {
    /// Files or directories to copy, and where to copy them
    #[arg(required = true, num_args = 2.., value_name = "PATH")]
    paths: Vec<Location>,
    /// Not needed: directories are always copied recursively
    #[arg(long, short, visible_short_alias = 'R')]
    recursive: bool,
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
    let show_progress = !args.quiet && !args.format.json;
    for copied in copy_all(&client, args.paths, show_progress).await? {
        if args.format.json && copied.to != "-" {
            output::json(&json!({ "path": copied.to, "bytes": copied.bytes }))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Copies every source to the last path.
async fn copy_all(
    client: &Client,
    mut paths: Vec<Location>,
    show_progress: bool,
) -> anyhow::Result<Vec<Copied>> {
    let Some(target) = paths.pop() else {
        bail!("the target is missing");
    };
    let target = match paths.len() {
        1 => target,
        _ => directory(target)?,
    };
    let mut all = Vec::new();
    for source in paths {
        let progress = progress::Progress::new(show_progress);
        all.push(copy(client, &progress, source, target.clone()).await?);
        progress.finish();
    }
    Ok(all)
}

/// The target of several sources, which is a directory.
fn directory(target: Location) -> anyhow::Result<Location> {
    match target {
        Location::Sandbox { id, path } => Ok(Location::Sandbox {
            path: format!("{}/", path.trim_end_matches('/')),
            id,
        }),
        Location::Host(path) if path.is_dir() => Ok(Location::Host(path)),
        _ => bail!("the target of several sources must be an existing directory"),
    }
}

async fn copy(
    client: &Client,
    progress: &progress::Progress,
    from: Location,
    to: Location,
) -> anyhow::Result<Copied> {
    match (from, to) {
        (
            Location::Sandbox { id, path },
            Location::Sandbox {
                id: to,
                path: target,
            },
        ) => transfer::transfer(client, progress, (&id, &path), (&to, &target)).await,
        (from, Location::Sandbox { id, path }) => {
            upload::upload(client, progress, from, &id, &path).await
        }
        (Location::Sandbox { id, path }, to) => {
            download::download(client, progress, &id, &path, to).await
        }
        _ => bail!("neither source nor target is in a sandbox: write one as ID:PATH"),
    }
}
