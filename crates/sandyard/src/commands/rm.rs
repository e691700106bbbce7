//! `sandyard rm`.

use std::process::ExitCode;

use clap::Args;
use sandyard_client::ListFilter;

use super::lifecycle::apply_to_each;
use super::local;
use crate::global::Global;
use crate::output::Format;

#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// IDs or names of the sandboxes
    #[arg(required_unless_present = "all", value_name = "ID")]
    ids: Vec<String>,
    /// Delete every sandbox that `sandyard ls` lists; with --local also the pre-created ones
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Use the engine of this data directory instead of a server, for sandboxes of `sandyard run`
    #[arg(long)]
    local: bool,
    #[command(flatten)]
    format: Format,
}

/// Deletes each sandbox and prints its id. Continues after a failure.
pub(crate) async fn rm(global: &Global, args: &RmArgs) -> anyhow::Result<ExitCode> {
    let ids = (!args.all).then(|| args.ids.clone());
    if args.local {
        return local::rm(global, ids, args.format).await;
    }
    let client = global.client()?;
    let ids = match ids {
        Some(ids) => ids,
        None => {
            let all = client.list_all(&ListFilter::default()).await?;
            all.into_iter().map(|sandbox| sandbox.sandbox_id).collect()
        }
    };
    apply_to_each(&ids, args.format, async |id| {
        client.delete(id).await?;
        Ok((id.to_owned(), id.to_owned()))
    })
    .await
}
