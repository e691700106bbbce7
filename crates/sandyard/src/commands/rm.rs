//! `sandyard rm`: removes sandboxes.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use sandyard_client::ListFilter;

use super::local;
use crate::global::Global;
use crate::output::{self, Format};

#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// Ids or names of sandboxes, as `sandyard ls` prints them
    #[arg(required_unless_present = "all", value_name = "ID")]
    ids: Vec<String>,
    /// Remove every sandbox that `sandyard ls` lists; with --local those kept ready, too
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Ask the engine of this data directory instead of a server: for what `sandyard run` left
    #[arg(long)]
    local: bool,
    #[command(flatten)]
    format: Format,
}

/// Removes each sandbox and prints its id; goes on after one that fails.
pub(crate) async fn rm(global: &Global, args: &RmArgs) -> anyhow::Result<ExitCode> {
    let ids = (!args.all).then_some(args.ids.as_slice());
    let removed = match args.local {
        true => local::rm(global, ids).await?,
        false => remove(global, ids).await?,
    };
    if args.format.json {
        output::json(&removed.ids)?;
    } else {
        for id in &removed.ids {
            output::line(id);
        }
    }
    match removed.failed {
        0 => Ok(ExitCode::SUCCESS),
        failed => bail!("{failed} not removed"),
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Removed {
    pub(super) ids: Vec<String>,
    pub(super) failed: usize,
}

impl Removed {
    /// Counts one in; a failure is told at once.
    pub(super) fn count(&mut self, id: &str, outcome: anyhow::Result<()>) {
        match outcome {
            Ok(()) => self.ids.push(id.to_owned()),
            Err(error) => {
                self.failed += 1;
                output::error(&error);
            }
        }
    }
}

async fn remove(global: &Global, ids: Option<&[String]>) -> anyhow::Result<Removed> {
    let client = global.client()?;
    let ids = match ids {
        Some(ids) => ids.to_vec(),
        None => {
            let all = client.list_all(&ListFilter::default()).await?;
            all.into_iter().map(|sandbox| sandbox.sandbox_id).collect()
        }
    };
    let mut removed = Removed::default();
    for id in ids {
        let outcome = client.delete(&id).await;
        removed.count(&id, outcome.map_err(Into::into));
    }
    Ok(removed)
}
