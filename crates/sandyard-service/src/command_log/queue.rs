//! What is in memory of the command logs: records that wait for the writer thread, and running commands.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use sandyard_core::SandboxId;
use tokio::sync::{Notify, Semaphore, watch};

use super::files::Bounds;
use super::line_splitter::LineSplitter;
use super::record::Record;

/// Bytes of one sandbox that may wait for the writer; beyond that, recorders wait. Far less than what an agent keeps.
pub(super) const MAX_QUEUED: usize = 128 << 10;
/// The bound for lines whose producer cannot wait. Lines beyond it are lost.
pub(super) const MAX_QUEUED_LINES: usize = 4 * MAX_QUEUED;
/// The bound for all other records.
pub(super) const MAX_QUEUED_RECORDS: usize = 8 * MAX_QUEUED;
/// Files that are read at the same time. Each is in memory meanwhile.
const MAX_CONCURRENT_READS: usize = 4;

/// The state that the logs share with their writer thread.
#[derive(Debug)]
pub(super) struct Shared {
    /// Where the logs are; none if no output is logged.
    pub(super) folder: Option<PathBuf>,
    pub(super) bounds: Bounds,
    /// Names this server among those that share the folder.
    pub(super) writer: String,
    pub(super) state: Mutex<State>,
    /// Wakes the writer thread.
    pub(super) work: Condvar,
    pub(super) read_slots: Semaphore,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) logs: HashMap<SandboxId, Log>,
    /// Logs with queued records.
    pub(super) dirty: HashSet<SandboxId>,
    /// Whether a task waits for the writer.
    pub(super) is_urgent: bool,
    pub(super) is_closed: bool,
}

/// What is in memory of one log.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) queue: Vec<Record>,
    pub(super) queued_bytes: usize,
    /// Number of lines that were lost because the queue was full.
    pub(super) lost: u64,
    /// Whether a recorder's wait for space has timed out since the last write.
    pub(super) is_stuck: bool,
    /// Number of batches that the writer has taken. `last_written_batch` has the number of those that it is done with.
    pub(super) batches_taken: u64,
    /// Running commands, by process id.
    pub(super) commands: HashMap<u32, LineSplitter>,
    /// Notified when the queue was written.
    pub(super) space_freed: Arc<Notify>,
    /// Counts writes, for followers.
    pub(super) last_written_batch: watch::Sender<u64>,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            queue: Vec::new(),
            queued_bytes: 0,
            lost: 0,
            is_stuck: false,
            batches_taken: 0,
            commands: HashMap::new(),
            space_freed: Arc::default(),
            last_written_batch: watch::channel(0).0,
        }
    }
}

impl Log {
    pub(super) fn is_full(&self) -> bool {
        self.queued_bytes > MAX_QUEUED
    }
}

impl Shared {
    pub(super) fn new(folder: Option<PathBuf>, bounds: Bounds, writer: String) -> Arc<Self> {
        Arc::new(Self {
            folder,
            bounds,
            writer,
            state: Mutex::default(),
            work: Condvar::new(),
            read_slots: Semaphore::new(MAX_CONCURRENT_READS),
        })
    }

    /// The folder of one sandbox's log; none if no output is logged.
    pub(super) fn folder_of(&self, id: &SandboxId) -> Option<PathBuf> {
        Some(self.folder.as_deref()?.join(id.as_str()))
    }

    /// Makes the writer write at once.
    pub(super) fn hurry(&self, state: &mut State) {
        state.is_urgent = true;
        self.work.notify_one();
    }

    /// Queues records for the writer, within bounds. Lines beyond them are counted as lost. A command whose start or end is missing in
    /// the log is known to its agent or to the history.
    pub(super) fn queue(
        &self,
        state: &mut State,
        id: &SandboxId,
        records: impl IntoIterator<Item = Record>,
    ) {
        if self.folder.is_none() {
            return;
        }
        let Some(log) = state.logs.get_mut(id) else {
            return;
        };
        for record in records {
            match &record {
                Record::Lines(lines) if log.queued_bytes > MAX_QUEUED_LINES => {
                    log.lost += u64::from(lines.count);
                    continue;
                }
                _ if log.queued_bytes > MAX_QUEUED_RECORDS => continue,
                _ => {}
            }
            log.queued_bytes += queued_size(&record);
            log.queue.push(record);
        }
        if state.dirty.insert(id.clone()) {
            self.work.notify_one();
        }
    }
}

pub(super) fn queued_size(record: &Record) -> usize {
    const OVERHEAD: usize = 128;
    OVERHEAD
        + match record {
            Record::Lines(lines) => lines.text.len(),
            Record::CommandOpened(_) | Record::CommandClosed(_) => 0,
        }
}
