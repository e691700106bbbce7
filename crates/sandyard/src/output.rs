//! Printing: results go to standard output, everything else to standard error.

mod colour;
mod errors;
mod escape;
mod table;
mod time;
mod width;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;

pub(crate) use colour::{Colour, use_colour};
pub(crate) use errors::{client_hint, error};
pub(crate) use escape::escape_control;
pub(crate) use table::{Cell, fields, fitted_lines, table};
pub(crate) use time::{ago, clock_time, until};
pub(crate) use width::terminal_width;

/// How a command prints its result.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct Format {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Format {
    /// Prints a result as JSON, or as a line of text.
    pub(crate) fn print(
        self,
        value: &impl Serialize,
        text: impl AsRef<str>,
    ) -> anyhow::Result<ExitCode> {
        match self.json {
            true => json(value)?,
            false => line(text),
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Prints a list as JSON, or as a table with one row for each item.
    pub(crate) fn print_table<T: Serialize>(
        self,
        headings: &[&str],
        items: &[T],
        row: impl Fn(&T) -> Vec<Cell>,
    ) -> anyhow::Result<ExitCode> {
        match self.json {
            true => json(&items)?,
            false => table(headings, &items.iter().map(row).collect::<Vec<_>>()),
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Prints a list as JSON, or as a table that fits the terminal: columns after the first `required` are shown if they fit.
    pub(crate) fn print_fitted<T: Serialize>(
        self,
        headings: &[&str],
        required: usize,
        items: &[T],
        row: impl Fn(&T) -> Vec<Cell>,
    ) -> anyhow::Result<ExitCode> {
        let rows = || items.iter().map(row).collect::<Vec<_>>();
        match self.json {
            true => json(&items)?,
            false => lines(&fitted_lines(headings, required, &rows())),
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints several lines.
pub(crate) fn lines(texts: &[String]) {
    texts.iter().for_each(line);
}

/// The first error of writing to standard output.
static WRITE_ERROR: OnceLock<io::Error> = OnceLock::new();

/// Prints a line of the result. [`finish`] reports a failed write.
pub(crate) fn line(text: impl AsRef<str>) {
    record_error(writeln!(io::stdout(), "{}", text.as_ref()));
}

/// Prints a line to standard error.
pub(crate) fn note(text: impl AsRef<str>) {
    // There is nowhere left to report that standard error cannot be written.
    let _ = writeln!(io::stderr(), "{}", text.as_ref());
}

/// Prints a value as indented JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    line(serde_json::to_string_pretty(value)?);
    Ok(())
}

/// Prints a value as JSON on one line, for streams of values.
pub(crate) fn json_line(value: &impl Serialize) -> anyhow::Result<()> {
    line(serde_json::to_string(value)?);
    Ok(())
}

/// Returns whether standard output still accepts data.
pub(crate) fn is_writable() -> bool {
    WRITE_ERROR.get().is_none()
}

/// Flushes standard output and fails if a part of the result was lost. A closed pipe is not a failure.
pub(crate) fn finish() -> anyhow::Result<()> {
    record_error(io::stdout().flush());
    match WRITE_ERROR.get() {
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let error = io::Error::new(error.kind(), error.to_string());
            Err(error).context("writing the result")
        }
        _ => Ok(()),
    }
}

fn record_error(outcome: io::Result<()>) {
    if let Err(error) = outcome {
        let _ = WRITE_ERROR.set(error);
    }
}
