//! Which kernel features this host has, what each gives, and how to get the missing ones.
//!
//! Features are tried, not guessed from versions: in forked children with namespaces of their own, so that nothing is left
//! behind whatever happens. Works as root and as an ordinary user; the data directory need not exist.
//!
//! - [`mod@report`]: the result
//! - [`mod@render`]: the result as text
//! - `attempt`: runs one try in a child process
//! - `host`: the user that runs the checks, and the data directory
//! - `checks`: one file per family of features
//!
//! This crate prints nothing and changes nothing: a fix is a command for the user to type.

mod attempt;
mod checks;
mod host;
pub mod render;
pub mod report;

pub use render::{Style, render};
pub use report::{Check, Need, Report, Status, Verdict};

use std::path::PathBuf;

/// What to check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where sandboxes will be kept. Need not exist yet.
    pub data_dir: PathBuf,
}

/// Runs all checks. Takes well below a second.
///
/// Forks children, which make system calls only: fine in a program with threads.
pub fn report(options: &Options) -> Report {
    let host = host::Host::detect(&options.data_dir);
    Report::of(host.mode(), checks::all(&host))
}
