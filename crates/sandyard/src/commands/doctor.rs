//! `sandyard doctor`: what this host can do, and how to get what it cannot.

use std::process::ExitCode;

use clap::Args;

use crate::cli::Global;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints the report. Fails when something required is missing.
pub(crate) fn doctor(global: &Global, args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let report = report(global);
    if args.json {
        output::json(&report)?;
    } else {
        output::line(rendered(&report).trim_end());
    }
    Ok(if report.is_usable() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Looks at the host.
pub(crate) fn report(global: &Global) -> sandyard_doctor::Report {
    sandyard_doctor::report(&sandyard_doctor::Options { data_dir: global.data_dir() })
}

/// The report for people.
pub(crate) fn rendered(report: &sandyard_doctor::Report) -> String {
    report.render(sandyard_doctor::Paint::detect())
}
