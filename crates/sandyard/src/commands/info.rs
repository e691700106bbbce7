//! `sandyard info` and `sandyard metrics`.

use std::process::ExitCode;

use clap::Args;

use super::{network, render};
use crate::global::Global;
use crate::output::Format;

/// A sandbox, and how to print the answer.
#[derive(Debug, Args)]
pub(crate) struct SandboxArgs {
    /// ID or name of the sandbox
    #[arg(value_name = "ID")]
    pub(super) id: String,
    #[command(flatten)]
    pub(super) format: Format,
}

/// Prints the details of a sandbox.
pub(crate) async fn info(global: &Global, args: &SandboxArgs) -> anyhow::Result<ExitCode> {
    let info = global.client()?.inspect(&args.id).await?;
    let mut fields = serde_json::to_value(&info)?;
    // A policy is one line here; `sandyard network show` prints all of it.
    if let Some(policy) = info.network.as_ref().filter(|_| !args.format.json) {
        fields["network"] = network::summary(policy).into();
    }
    render::print_fields(&fields, args.format)
}

/// Prints the resource usage of a sandbox without waking it.
pub(crate) async fn metrics(global: &Global, args: &SandboxArgs) -> anyhow::Result<ExitCode> {
    let metrics = global.client()?.metrics(&args.id).await?;
    render::print_fields(&metrics, args.format)
}
