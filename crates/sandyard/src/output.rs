//! Writing to people and programs: standard output for results, standard error for everything else.

mod failure;
mod paint;
mod table;
mod visible;

use std::io::{self, Write};
use std::sync::OnceLock;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;

pub(crate) use failure::{client_hint, error};
pub(crate) use paint::{Colour, is_colourful};
pub(crate) use table::{Cell, fields, table};
pub(crate) use visible::visible;

/// How results are printed.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Format {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Why results could not be written, the first time that happened.
static FAILURE: OnceLock<io::Error> = OnceLock::new();

/// Prints a line of results. What cannot be written is told at the end, by [`finish`].
pub(crate) fn line(text: impl AsRef<str>) {
    remember(writeln!(io::stdout(), "{}", text.as_ref()));
}

/// Prints a remark.
pub(crate) fn note(text: impl AsRef<str>) {
    // Nobody is left to tell that this failed.
    let _ = writeln!(io::stderr(), "{}", text.as_ref());
}

/// Prints a value for programs.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    line(serde_json::to_string_pretty(value)?);
    Ok(())
}

/// Prints a value for programs on a line of its own, for streams of them.
pub(crate) fn json_line(value: &impl Serialize) -> anyhow::Result<()> {
    line(serde_json::to_string(value)?);
    Ok(())
}

/// Says whether somebody still reads what we print.
pub(crate) fn is_read() -> bool {
    FAILURE.get().is_none()
}

/// Fails if results are lost. A reader that has gone away is not an error of ours.
pub(crate) fn finish() -> anyhow::Result<()> {
    remember(io::stdout().flush());
    match FAILURE.get() {
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let lost = io::Error::new(error.kind(), error.to_string());
            Err(lost).context("writing the result")
        }
        _ => Ok(()),
    }
}

fn remember(outcome: io::Result<()>) {
    if let Err(error) = outcome {
        let _ = FAILURE.set(error);
    }
}
