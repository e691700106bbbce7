//! Using things up: fork bomb, memory hog, disk filler, busy loops.
//!
//! Each stops by itself at `give_up_at`, which lies above the limit in question, so a limit that does not hold is told and not found out by the host's death.

mod disk;
mod judge;
mod memory;
mod processes;
mod processor;

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use judge::judge;

/// What to use up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exhaust {
    /// Fork until refused, then let all of them fork on for some time.
    Processes {
        /// Processes.
        give_up_at: u64,
        /// How long the storm goes on.
        storm_seconds: u64,
    },
    /// Touch memory until refused or killed.
    Memory {
        /// Bytes.
        give_up_at: u64,
    },
    /// Fill every writable memory file system until refused or killed.
    MemoryFiles {
        /// Bytes.
        give_up_at: u64,
    },
    /// Write a file until refused.
    Disk {
        /// Where.
        directory: PathBuf,
        /// Bytes.
        give_up_at: u64,
    },
    /// Make empty files until refused.
    DiskFiles {
        /// Where.
        directory: PathBuf,
        /// Files.
        give_up_at: u64,
    },
    /// Spin on several threads.
    Processor {
        /// Threads.
        threads: u64,
        /// For how long.
        seconds: u64,
    },
}

/// How far it came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exhausted {
    /// What was used up: processes, bytes, files, or milliseconds of processor time.
    pub reached: u64,
    /// What ended it.
    pub stopped_by: StoppedBy,
    /// The words for a report.
    pub detail: String,
}

/// What ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoppedBy {
    /// The kernel refused more.
    Refused,
    /// The kernel killed the hog.
    Killed,
    /// It gave up: nothing had stopped it.
    GaveUp,
    /// Its time was over, as planned.
    Time,
}

impl Exhaust {
    /// Does it. Everything it used is given back before it returns.
    ///
    /// # Errors
    /// When it could not even begin.
    pub fn run(&self) -> io::Result<Exhausted> {
        match self {
            Self::Processes {
                give_up_at,
                storm_seconds,
            } => processes::bomb(*give_up_at, *storm_seconds),
            Self::Memory { give_up_at } => memory::hog(*give_up_at),
            Self::MemoryFiles { give_up_at } => memory::fill_files(*give_up_at),
            Self::Disk {
                directory,
                give_up_at,
            } => disk::fill(directory, *give_up_at),
            Self::DiskFiles {
                directory,
                give_up_at,
            } => disk::fill_with_files(directory, *give_up_at),
            Self::Processor { threads, seconds } => processor::spin(*threads, *seconds),
        }
    }
}
