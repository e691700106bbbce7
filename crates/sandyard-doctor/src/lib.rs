//! Which kernel features this host has, what each gives, and how to get the missing ones.
//!
//! Features are tried, not guessed from versions: in forked children with namespaces of their own, so that nothing is left
//! behind whatever happens. Works as root and as an ordinary user; the data directory need not exist.
//!
//! - [`mod@report`]: what was found
//! - [`mod@render`]: the same for people
//! - `attempt`: trying something in a child
//! - `host`: who we are and where the data goes
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

/// What to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where sandboxes will be kept. Need not exist yet.
    pub data_dir: PathBuf,
}

impl Default for Options {
    /// Takes the data directory that Sandyard takes when told nothing.
    fn default() -> Self {
        let data_dir = host::default_data_dir();
        Self { data_dir }
    }
}

/// Tries everything. Takes well below a second.
///
/// Forks children, which make system calls only: fine in a program with threads.
pub fn report(options: &Options) -> Report {
    let host = host::Host::look(&options.data_dir);
    Report::of(host.mode(), checks::all(&host))
}
