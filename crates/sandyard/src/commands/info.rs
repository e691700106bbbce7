//! `sandyard info` and `sandyard metrics`: all that is known of a sandbox, and what it uses.

use std::process::ExitCode;

use clap::Args;

use super::{network, show};
use crate::global::Global;
use crate::output::{self, Format};

#[derive(Debug, Args)]
pub(crate) struct OneArgs {
    /// Id or name of a sandbox
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    format: Format,
}

/// Prints what is known of a sandbox.
pub(crate) async fn info(global: &Global, args: &OneArgs) -> anyhow::Result<ExitCode> {
    let info = global.client()?.inspect(&args.id).await?;
    if args.format.json {
        return print(&info, args.format);
    }
    // `sandyard network show` has all of it.
    let mut shown = serde_json::to_value(&info)?;
    if let Some(policy) = &info.network {
        shown["network"] = network::summary(policy).into();
    }
    print(&shown, args.format)
}

/// Prints what a sandbox uses. Does not wake it.
pub(crate) async fn metrics(global: &Global, args: &OneArgs) -> anyhow::Result<ExitCode> {
    let metrics = global.client()?.metrics(&args.id).await?;
    print(&metrics, args.format)
}

fn print(answer: &impl serde::Serialize, format: Format) -> anyhow::Result<ExitCode> {
    match format.json {
        true => output::json(answer)?,
        false => show::whole(answer)?,
    }
    Ok(ExitCode::SUCCESS)
}
