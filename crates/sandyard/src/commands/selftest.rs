//! `sandyard selftest`: tries to break out.

use std::process::ExitCode;

use clap::Args;

use crate::cli::Global;

#[derive(Debug, Args)]
pub(crate) struct SelftestArgs {
    /// Run the escape suite
    #[arg(long)]
    escape: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the suite.
pub(crate) async fn selftest(_global: &Global, args: SelftestArgs) -> anyhow::Result<ExitCode> {
    let _ = (args.escape, args.json);
    anyhow::bail!("not yet")
}
