//! `sandyard doctor`.

use std::process::ExitCode;

use sandyard_doctor::{Style, Verdict};

use crate::global::Global;
use crate::output::{self, Format};

/// Prints the report. Exits with 1 when a required feature is missing.
pub(crate) fn doctor(global: &Global, format: Format) -> anyhow::Result<ExitCode> {
    let report = sandyard_doctor::report(&sandyard_doctor::Options {
        data_dir: global.data_dir(),
    });
    if format.json {
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
