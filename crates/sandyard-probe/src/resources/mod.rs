//! Exhausts resources: fork bomb, memory, disk, busy loops.
//!
//! Each stops at `give_up_at`, which is above the limit in question, so that a limit that does not hold is reported and does not
//! take the host down.

mod disk;
mod judge;
mod memory;
mod processes;
mod processor;

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use judge::judge;

/// The resource to exhaust.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exhaust {
    /// Fork until refused, then let all of them fork on for some time.
    Processes {
        /// Number of processes to stop at.
        give_up_at: u64,
        /// How long they go on forking, in seconds.
        storm_seconds: u64,
    },
    /// Touch memory until refused or killed.
    Memory {
        /// Number of bytes to stop at.
        give_up_at: u64,
    },
    /// Fill every writable memory file system until refused or killed.
    MemoryFiles {
        /// Number of bytes to stop at.
        give_up_at: u64,
    },
    /// Write a file until refused.
    Disk {
        /// The directory to write in.
        directory: PathBuf,
        /// Number of bytes to stop at.
        give_up_at: u64,
    },
    /// Make empty files until refused.
    DiskFiles {
        /// The directory to write in.
        directory: PathBuf,
        /// Number of files to stop at.
        give_up_at: u64,
    },
    /// Spin on several threads.
    Processor {
        /// Number of threads.
        threads: u64,
        /// Duration in seconds.
        seconds: u64,
    },
}

/// The result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exhausted {
    /// How much was used: processes, bytes, files, or milliseconds of processor time.
    pub reached: u64,
    /// What ended it.
    pub stopped_by: StoppedBy,
    /// A description for the report.
    pub detail: String,
}

/// What ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoppedBy {
    /// The kernel refused more.
    Refused,
    /// The kernel killed the process.
    Killed,
    /// It reached `give_up_at`: nothing stopped it.
    GaveUp,
    /// Its time was over.
    Time,
}

impl Exhaust {
    /// Runs it. Everything it used is released before it returns.
    ///
    /// # Errors
    /// When it cannot be started.
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
