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
    /// Says which column its figures go to.
    fn column(&self) -> Column;

    /// Says whether it takes part in the group of this name: most take part in all.
    fn is_in(&self, _group: &str) -> bool {
        true
    }

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

    /// Has `count` sandboxes made through an official SDK and runs `echo` in each; none where there is no SDK.
    fn with_sdk(&self, _order: SdkOrder, _count: usize) -> Result<Option<SdkRun>> {
        Ok(None)
    }

    /// Gives what can be asked about sandboxes that stay, if it has such.
    fn live(&self) -> Option<&dyn Live>;
}

/// Says in which order sandboxes are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SdkOrder {
    /// One after another.
    OneByOne,
    /// All creates begin together.
    AtOnce,
}

/// What a run through an SDK gave.
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

    /// Freezes.
    fn pause(&self, id: &str) -> Result<()>;

    /// Thaws.
    fn resume(&self, id: &str) -> Result<()>;

    /// Runs `true` in a frozen one, by the shortest way there is.
    fn wake(&self, id: &str) -> Result<()> {
        self.resume(id)?;
        self.exec(id)
    }

    /// Asks where it stands; anything but running is an error.
    fn status(&self, id: &str) -> Result<()>;

    /// Takes away with everything it holds.
    fn delete(&self, id: &str) -> Result<()>;

    /// Has `count` sandboxes kept ready from now on, or as many as it is set up for, and waits until they are; says how
    /// many, or 0 where there is no such thing.
    fn keep_ready(&self, count: usize) -> Result<usize>;

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

    /// Gives the processes that manage all sandboxes.
    fn managers(&self) -> Result<Vec<u32>>;

    /// Kills what manages the sandboxes, starts it anew, and says how long until all `ids` are as before; none where a
    /// restart ends the sandboxes or is not ours to do.
    fn restart(&self, ids: &[String]) -> Result<Option<Restart>>;

    /// Writes `bytes` of data to a file inside and reads it back; none where that is not measured.
    fn file_round_trip(&self, id: &str, bytes: usize) -> Result<Option<Duration>>;

    /// Downloads `bytes` from a site on this host, inside by the way out and then on the host itself; none where there is no way
    /// out.
    fn download(&self, _id: &str, _bytes: usize) -> Result<Option<[Download; 2]>> {
        Ok(None)
    }

    /// Says whether its sandboxes have a tool server.
    fn has_tools(&self) -> bool {
        false
    }

    /// Shakes hands with the tool server as MCP wants it, writes a small file with a tool, and gives the session's id.
    fn first_tool_call(&self, _id: &str) -> Result<String> {
        bail!("there are no tools")
    }

    /// Reads that file with a tool.
    fn read_by_tool(&self, _id: &str, _session: &str) -> Result<()> {
        bail!("there are no tools")
    }

    /// Gives the bytes that the tool server uses (PSS).
    fn tools_memory(&self, _id: &str) -> Result<u64> {
        bail!("there are no tools")
    }
}

/// Says how long after a kill of what manages sandboxes something was the case again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Restart {
    /// The new one answered.
    pub(crate) back: Duration,
    /// All were listed as running, and `true` ran in some of them.
    pub(crate) some_ran: Duration,
    /// `true` ran in every one.
    pub(crate) all_ran: Duration,
}

/// Some of `ids` from all over the list: those that are asked first after a restart.
pub(crate) fn some_of(ids: &[String]) -> Vec<String> {
    const SOME: usize = 20;
    // A prime larger than any crowd visits each only once.
    const STRIDE: usize = 7919;
    (1..=SOME.min(ids.len()))
        .map(|index| ids[index * STRIDE % ids.len()].clone())
        .collect()
}

/// Runs `true` in all of `ids` and complains when one does not answer.
pub(crate) fn all_answer(subject: &dyn Live, ids: &[String]) -> Result<()> {
    let answered = subject.exec_all(ids)?;
    ensure!(
        answered == ids.len(),
        "{answered} of {} sandboxes answer after a restart",
        ids.len()
    );
    Ok(())
}

/// The burst of a subject that keeps what it makes: all of them made, then, outside the time, deleted.
pub(crate) fn burst_of(subject: &dyn Live, count: usize) -> Result<Duration> {
    let start = Instant::now();
    let ids = subject.create_many(count)?;
    let elapsed = start.elapsed();
    subject.delete_many(&ids)?;
    Ok(elapsed)
}
