//! Who is measured, and what can be asked of them.
//!
//! - `engine`: our own engine through its client library
//! - `docker`: Docker through its HTTP API and through its command line
//! - `bwrap`: bubblewrap
//!
//! A subject does the same work the same way each time and times nothing itself, save where the clock must stop in the
//! middle of its work (first output). Rows own the clock.

pub(crate) mod bwrap;
pub(crate) mod docker;
pub(crate) mod engine;
mod spawn;

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::report::Column;

/// Something that can run a command in isolation.
pub(crate) trait Subject {
    /// Says which column its figures go to.
    fn column(&self) -> Column;

    /// Says how many samples to take of it when a fast subject gets `full`.
    fn samples(&self, full: usize) -> usize;

    /// Starts a sandbox, runs `true`, takes the sandbox away.
    fn one_shot(&self) -> Result<()>;

    /// Starts a sandbox, runs `echo` and says how long its first byte took; then takes the sandbox away.
    fn first_output(&self) -> Result<Duration>;

    /// Says how many to start at once when a fast subject gets `full`.
    fn burst_size(&self, full: usize) -> usize;

    /// Starts `count` sandboxes at once, runs `true` in each and says how long all took; then takes them away.
    fn burst(&self, count: usize) -> Result<Duration>;

    /// Gives what can be asked about sandboxes that stay, if it has such.
    fn live(&self) -> Option<&dyn Live>;
}

/// Something whose sandboxes stay until deleted. Sandboxes are named by an opaque id.
pub(crate) trait Live: Subject {
    /// Starts a sandbox that is ready for commands.
    fn create(&self) -> Result<String>;

    /// Runs `true` and waits for its exit code.
    fn exec(&self, id: &str) -> Result<()>;

    /// Freezes.
    fn pause(&self, id: &str) -> Result<()>;

    /// Thaws.
    fn resume(&self, id: &str) -> Result<()>;

    /// Takes away with everything it holds.
    fn delete(&self, id: &str) -> Result<()>;

    /// Has `count` sandboxes kept ready from now on and waits until they are; says whether it can do that at all.
    fn keep_ready(&self, count: usize) -> Result<bool>;

    /// Says how many to keep live when a fast subject gets `full`; none where nobody would learn from it.
    fn crowd_size(&self, full: usize) -> Option<usize>;

    /// Starts `count` sandboxes at once and answers when `true` ran in each.
    fn create_many(&self, count: usize) -> Result<Vec<String>>;

    /// Runs `true` in each and says in how many it worked.
    fn exec_all(&self, ids: &[String]) -> Result<usize>;

    /// Takes all away at once.
    fn delete_many(&self, ids: &[String]) -> Result<()>;

    /// Gives the roots of the process trees that exist because of this sandbox.
    fn processes(&self, id: &str) -> Result<Vec<u32>>;

    /// Kills what manages the sandboxes, starts it anew, and says how long until all `ids` were listed and answered;
    /// none where a restart ends the sandboxes.
    fn restart(&self, ids: &[String]) -> Result<Option<Duration>>;

    /// Writes `bytes` of data to a file inside and reads it back; none where that is not measured.
    fn file_round_trip(&self, id: &str, bytes: usize) -> Result<Option<Duration>>;
}

/// The burst of a subject that keeps what it makes: all of them made, then, outside the time, deleted.
pub(crate) fn burst_of(subject: &dyn Live, count: usize) -> Result<Duration> {
    let start = Instant::now();
    let ids = subject.create_many(count)?;
    let elapsed = start.elapsed();
    subject.delete_many(&ids)?;
    Ok(elapsed)
}
