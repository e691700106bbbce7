//! `sandyard probe`: the hostile program of the self-test, inside a sandbox.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;

use crate::output;

#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// What to do, as JSON
    #[arg(long)]
    plan: String,
}

/// Does it and prints the answer as JSON.
pub(crate) fn probe(args: ProbeArgs) -> anyhow::Result<ExitCode> {
    let answer =
        sandyard_probe::perform(&args.plan, |line| output::line(line)).context("probing")?;
    output::line(answer);
    Ok(ExitCode::SUCCESS)
}
