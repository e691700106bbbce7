//! `sandyard rm`: removes sandboxes.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use sandyard_core::SandboxId;

use crate::cli::Global;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// Ids of sandboxes, as `sandyard ls` prints them
    #[arg(required_unless_present = "all", value_name = "ID")]
    ids: Vec<SandboxId>,
    /// Remove every sandbox of this data directory
    #[arg(long, conflicts_with = "ids")]
    all: bool,
}

/// Removes each sandbox and prints its id; goes on after one that fails.
pub(crate) async fn rm(global: &Global, args: &RmArgs) -> anyhow::Result<ExitCode> {
    let engine = global.engine().await?;
    let ids = match args.all {
        true => engine
            .list()
            .await?
            .into_iter()
            .map(|info| info.id)
            .collect(),
        false => args.ids.clone(),
    };
    let mut failed = 0;
    for id in ids {
        match async {
            engine.inspect(&id).await?;
            engine.delete(&id).await
        }
        .await
        {
            Ok(()) => output::line(id.as_str()),
            Err(error) => {
                failed += 1;
                output::error(&error.into());
            }
        }
    }
    if failed > 0 {
        bail!("{failed} not removed");
    }
    Ok(ExitCode::SUCCESS)
}
