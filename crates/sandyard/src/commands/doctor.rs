//! `sandyard doctor`: what this host can do, and how to get what it cannot.

use std::process::ExitCode;

use clap::Args;
use sandyard_doctor::{Style, Verdict};

use crate::global::Global;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints the report. Fails when something required is missing.
pub(crate) fn doctor(global: &Global, args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let report = sandyard_doctor::report(&sandyard_doctor::Options {
        data_dir: global.data_dir(),
    });
    if args.json {
        output::json(&report)?;
    } else {
        let style = Style::for_output(std::io::stdout());
        output::line(sandyard_doctor::render(&report, style).trim_end());
    }
    Ok(if report.verdict == Verdict::NotReady {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
