//! `sandyard probe`: runs in a sandbox of `sandyard selftest` and tries to break out.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;

use crate::output;

#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// Task to perform, as JSON
    #[arg(long)]
    plan: String,
}

/// Performs the task and prints the answer as JSON.
pub(crate) fn probe(args: ProbeArgs) -> anyhow::Result<ExitCode> {
    let answer =
        sandyard_probe::perform(&args.plan, |line| output::line(line)).context("probing")?;
    output::line(answer);
    Ok(ExitCode::SUCCESS)
}
