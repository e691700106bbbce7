//! The thread that writes command logs.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use sandyard_core::SandboxId;

use super::files::LogFiles;
use super::queue::{Shared, queued_size};
use super::record::{Lines, Record, source_code};
use crate::request::LogSource;

/// How long output is collected before it is written, so that many small writes become one.
const BATCH: Duration = Duration::from_millis(20);
/// How long to wait after a failed write.
const RETRY: Duration = Duration::from_millis(200);
/// How often the thread checks whether it is still needed.
const IDLE: Duration = Duration::from_secs(5);
/// Most logs whose files stay open.
const MAX_OPEN: usize = 64;

/// Starts the thread. It ends when the logs are closed or dropped.
pub(super) fn spawn(shared: &Arc<Shared>) -> io::Result<()> {
    let shared = Arc::downgrade(shared);
    std::thread::Builder::new()
        .name("command-log".to_owned())
        .spawn(move || run(&shared))?;
    Ok(())
}

fn run(shared: &Weak<Shared>) {
    let mut files: HashMap<SandboxId, (LogFiles, Instant)> = HashMap::new();
    let mut has_failed = false;
    while let Some(shared) = shared.upgrade() {
        let Some(ids) = next_batch(&shared, has_failed) else {
            return;
        };
        has_failed = false;
        for id in ids {
            if let Err(error) = write(&shared, &id, &mut files) {
                has_failed = true;
                files.remove(&id);
                tracing::warn!(%error, sandbox.id = %id, "Failed to write a command log; trying again");
            }
        }
        if files.len() > MAX_OPEN {
            let mut by_use: Vec<_> = files
                .iter()
                .map(|(id, (_, at))| (*at, id.clone()))
                .collect();
            by_use.sort_unstable();
            for (_, id) in &by_use[..by_use.len() / 2] {
                files.remove(id);
            }
        }
    }
}

/// Waits for queued records; none if the logs are closed.
fn next_batch(shared: &Shared, has_failed: bool) -> Option<Vec<SandboxId>> {
    let mut state = shared.state.lock();
    if state.dirty.is_empty() {
        if state.is_closed {
            return None;
        }
        shared.work.wait_for(&mut state, IDLE);
    }
    let pause = if has_failed { RETRY } else { BATCH };
    let end = Instant::now() + pause;
    while has_failed || !state.is_urgent {
        let remaining = end.saturating_duration_since(Instant::now());
        if remaining.is_zero() || state.dirty.is_empty() || state.is_closed {
            break;
        }
        shared.work.wait_for(&mut state, remaining);
    }
    state.is_urgent = false;
    Some(state.dirty.drain().collect())
}

/// Writes the queued records of one sandbox. If that fails, they are queued again.
fn write(
    shared: &Shared,
    id: &SandboxId,
    files: &mut HashMap<SandboxId, (LogFiles, Instant)>,
) -> io::Result<()> {
    let Some(folder) = shared.folder.as_deref() else {
        return Ok(());
    };
    let (mut records, lost) = {
        let mut state = shared.state.lock();
        let Some(log) = state.logs.get_mut(id) else {
            return Ok(());
        };
        log.batches_taken += 1;
        (std::mem::take(&mut log.queue), log.lost)
    };
    if lost > 0 {
        records.push(loss_notice(lost, &records));
    }
    let result = append(shared, folder, id, files, &mut records);
    let mut state = shared.state.lock();
    let Some(log) = state.logs.get_mut(id) else {
        return result;
    };
    if result.is_ok() {
        log.lost -= lost;
        log.is_stuck = false;
        log.queued_bytes = log.queue.iter().map(queued_size).sum();
        log.space_freed.notify_waiters();
    } else {
        if lost > 0 {
            records.pop();
        }
        records.append(&mut log.queue);
        log.queue = records;
    }
    // Also after a failure, so that tasks that wait for this batch do not wait for the next one.
    let taken = log.batches_taken;
    log.last_written_batch.send_replace(taken);
    if result.is_err() {
        state.dirty.insert(id.clone());
    }
    result
}

fn append(
    shared: &Shared,
    folder: &std::path::Path,
    id: &SandboxId,
    files: &mut HashMap<SandboxId, (LogFiles, Instant)>,
    records: &mut [Record],
) -> io::Result<()> {
    if records.is_empty() {
        return Ok(());
    }
    let now = Instant::now();
    let (log, used) = match files.entry(id.clone()) {
        std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
        std::collections::hash_map::Entry::Vacant(entry) => {
            let log = LogFiles::open(&folder.join(id.as_str()), shared.bounds)?;
            entry.insert((log, now))
        }
    };
    *used = now;
    log.append(&shared.writer, records)
}

/// A line in the log that says how many lines are missing.
fn loss_notice(lost: u64, records: &[Record]) -> Record {
    let at_ms = records.iter().rev().find_map(|record| match record {
        Record::Lines(lines) => Some(lines.at_ms),
        _ => None,
    });
    Record::Lines(Lines {
        at_ms: at_ms.unwrap_or_default(),
        source: source_code(LogSource::Notice),
        count: 1,
        text: format!("{lost} lines of output were lost: they could not be written\n").into_bytes(),
        ..Lines::default()
    })
}
