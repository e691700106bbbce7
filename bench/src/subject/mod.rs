//! Who is measured, and what can be asked of them.
//!
//! - `engine`: our own engine through its client library
//! - `server`: our own server through HTTP
//! - `docker`: Docker through its HTTP API and through its command line
//! - `bwrap`: bubblewrap
//!
//! A subject does the same work the same way each time and times nothing itself, save where the clock must stop in the
//! middle of its work (first output). Rows own the clock.

pub(crate) mod bwrap;
pub(crate) mod docker;
pub(crate) mod engine;
mod http;
mod parallel;
pub(crate) mod sdk;
pub(crate) mod server;
pub(crate) mod site;
mod spawn;

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use self::site::Download;
use crate::report::Column;

/// Something that can run a command in isolation.
pub(crate) trait Subject {
    /// Returns which column its figures go to.
    fn column(&self) -> Column;

    /// Whether it takes part in the group of this name: most take part in all.
    fn is_in(&self, _group: &str) -> bool {
        true
    }

    /// Returns how many samples to take of it when a fast subject gets `full`.
    fn samples(&self, full: usize) -> usize;

    /// Starts a sandbox, runs `true`, and deletes the sandbox.
    fn one_shot(&self) -> Result<()>;

    /// Starts a sandbox, runs `echo`, returns the time to its first byte, and deletes the sandbox.
    fn first_output(&self) -> Result<Duration>;

    /// Returns how many to start at once when a fast subject gets `full`.
    fn burst_size(&self, full: usize) -> usize;

    /// Starts `count` sandboxes at once, runs `true` in each, returns the total time, and deletes them.
    fn burst(&self, count: usize) -> Result<Duration>;

    /// Creates `count` sandboxes through an official SDK and runs `echo` in each. `None` without an SDK.
    fn with_sdk(&self, _order: SdkOrder, _count: usize) -> Result<Option<SdkRun>> {
        Ok(None)
    }

    /// Returns what can be asked about sandboxes that stay, if it has such.
    fn live(&self) -> Option<&dyn Live>;
}

/// Order in which sandboxes are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SdkOrder {
    /// One after another.
    OneByOne,
    /// All creates begin together.
    AtOnce,
}

/// Result of a run through an SDK.
#[derive(Clone, Debug)]
pub(crate) struct SdkRun {
    /// Milliseconds of each that worked, from before its create until its first output.
    pub(crate) millis: Vec<f64>,
}

/// Something whose sandboxes stay until deleted. Sandboxes are named by an opaque id.
pub(crate) trait Live: Subject {
    /// Starts a sandbox that is ready for commands.
    fn create(&self) -> Result<String>;

    /// Runs `true` and waits for its exit code.
    fn exec(&self, id: &str) -> Result<()>;

    /// Pauses the sandbox.
    fn pause(&self, id: &str) -> Result<()>;

    /// Resumes the sandbox.
    fn resume(&self, id: &str) -> Result<()>;

    /// Runs `true` in a paused sandbox, with as few requests as possible.
    fn wake(&self, id: &str) -> Result<()> {
        self.resume(id)?;
        self.exec(id)
    }

    /// Checks the status; anything but running is an error.
    fn status(&self, id: &str) -> Result<()>;

    /// Deletes the sandbox with its files.
    fn delete(&self, id: &str) -> Result<()>;

    /// Keeps `count` sandboxes ready, or as many as configured, and waits until they are. Returns the number, or 0
    /// without a pool.
    fn keep_ready(&self, count: usize) -> Result<usize>;

    /// Returns how many to keep live when a fast subject gets `full`; none where nobody would learn from it.
    fn crowd_size(&self, full: usize) -> Option<usize>;

    /// Starts `count` sandboxes at once and answers when `true` ran in each.
    fn create_many(&self, count: usize) -> Result<Vec<String>>;

    /// Runs `true` in each and says in how many it worked.
    fn exec_all(&self, ids: &[String]) -> Result<usize>;

    /// Deletes all at once.
    fn delete_many(&self, ids: &[String]) -> Result<()>;

    /// Returns the roots of the process trees that exist because of this sandbox.
    fn processes(&self, id: &str) -> Result<Vec<u32>>;

    /// Returns the processes that manage all sandboxes.
    fn managers(&self) -> Result<Vec<u32>>;

    /// Kills the manager of the sandboxes, restarts it, and returns the time until all `ids` work again. `None` if a
    /// restart ends the sandboxes or is not possible.
    fn restart(&self, ids: &[String]) -> Result<Option<Restart>>;

    /// Writes a file of `bytes` inside and reads it back. `None` if not measured.
    fn file_round_trip(&self, id: &str, bytes: usize) -> Result<Option<Duration>>;

    /// Downloads `bytes` from a site on this host, inside through the gateway and then on the host itself. `None`
    /// without egress.
    fn download(&self, _id: &str, _bytes: usize) -> Result<Option<[Download; 2]>> {
        Ok(None)
    }

    /// Whether its sandboxes have a tool server.
    fn has_tools(&self) -> bool {
        false
    }

    /// Initializes an MCP session, writes a small file with a tool, and returns the session ID.
    fn first_tool_call(&self, _id: &str) -> Result<String> {
        bail!("there are no tools")
    }

    /// Reads that file with a tool.
    fn read_by_tool(&self, _id: &str, _session: &str) -> Result<()> {
        bail!("there are no tools")
    }

    /// Returns the bytes that the tool server uses (PSS).
    fn tools_memory(&self, _id: &str) -> Result<u64> {
        bail!("there are no tools")
    }
}

/// Returns how long after a kill of what manages sandboxes something was the case again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Restart {
    /// The new manager answered.
    pub(crate) back: Duration,
    /// All were listed as running, and `true` ran in some of them.
    pub(crate) some_ran: Duration,
    /// `true` ran in every one.
    pub(crate) all_ran: Duration,
}

/// Sample of `ids` from all over the list, which are tested first after a restart.
pub(crate) fn some_of(ids: &[String]) -> Vec<String> {
    const SOME: usize = 20;
    // A prime larger than any crowd visits each only once.
    const STRIDE: usize = 7919;
    (1..=SOME.min(ids.len()))
        .map(|index| ids[index * STRIDE % ids.len()].clone())
        .collect()
}

/// Runs `true` in all of `ids`. Fails if one does not answer.
pub(crate) fn all_answer(subject: &dyn Live, ids: &[String]) -> Result<()> {
    let answered = subject.exec_all(ids)?;
    ensure!(
        answered == ids.len(),
        "{answered} of {} sandboxes answer after a restart",
        ids.len()
    );
    Ok(())
}

/// Burst of a subject with sandboxes that stay: creates all, and deletes them outside the measured time.
pub(crate) fn burst_of(subject: &dyn Live, count: usize) -> Result<Duration> {
    let start = Instant::now();
    let ids = subject.create_many(count)?;
    let elapsed = start.elapsed();
    subject.delete_many(&ids)?;
    Ok(elapsed)
}
