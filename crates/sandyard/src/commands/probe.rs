//! `sandyard probe`: the hostile program of the self-test, inside a sandbox.

use std::process::ExitCode;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// What the host planted, as JSON
    #[arg(long)]
    plan: String,
}

/// Tries everything and prints what it found as JSON.
pub(crate) fn probe(_args: ProbeArgs) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not yet")
}
