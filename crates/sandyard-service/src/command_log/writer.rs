//! The thread that writes logs.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use sandyard_core::SandboxId;

use super::files::LogFiles;
use super::record::{Lines, Record, source_code};
use super::{Inner, queued_size};
use crate::request::LogSource;

/// How long output is collected before it is written: many small writes become one.
const BATCH: Duration = Duration::from_millis(20);
/// How long to wait after a write that failed.
const RETRY: Duration = Duration::from_millis(200);
/// How often the thread looks whether it is still needed.
const IDLE: Duration = Duration::from_secs(5);
/// Logs whose files stay open.
const MAX_OPEN: usize = 64;

/// Starts the thread. It ends when the logs are closed or nobody has them any more.
pub(super) fn spawn(inner: &Arc<Inner>) -> io::Result<()> {
    let inner = Arc::downgrade(inner);
    std::thread::Builder::new()
        .name("command-log".to_owned())
        .spawn(move || run(&inner))?;
    Ok(())
}

fn run(inner: &Weak<Inner>) {
    let mut files: HashMap<SandboxId, (LogFiles, Instant)> = HashMap::new();
    let mut has_failed = false;
    while let Some(inner) = inner.upgrade() {
        let Some(ids) = next_batch(&inner, has_failed) else {
            return;
        };
        has_failed = false;
        for id in ids {
            if let Err(error) = write(&inner, &id, &mut files) {
                has_failed = true;
                files.remove(&id);
                tracing::warn!(%error, sandbox.id = %id, "Output of commands cannot be written; it is tried again");
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

/// Waits for something to write; none: the logs are closed.
fn next_batch(inner: &Inner, has_failed: bool) -> Option<Vec<SandboxId>> {
    let mut state = inner.state();
    if state.dirty.is_empty() {
        if state.is_closed {
            return None;
        }
        let waited = inner.work.wait_timeout(state, IDLE);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    let pause = if has_failed { RETRY } else { BATCH };
    let end = Instant::now() + pause;
    while has_failed || !state.is_urgent {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || state.dirty.is_empty() || state.is_closed {
            break;
        }
        let waited = inner.work.wait_timeout(state, left);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    state.is_urgent = false;
    Some(state.dirty.drain().collect())
}

/// Writes what is queued of one sandbox. When it fails, it is queued again.
fn write(
    inner: &Inner,
    id: &SandboxId,
    files: &mut HashMap<SandboxId, (LogFiles, Instant)>,
) -> io::Result<()> {
    let Some(folder) = inner.folder.as_deref() else {
        return Ok(());
    };
    let (mut records, lost) = {
        let mut state = inner.state();
        let Some(log) = state.logs.get_mut(id) else {
            return Ok(());
        };
        log.taken += 1;
        (std::mem::take(&mut log.queue), log.lost)
    };
    if lost > 0 {
        records.push(notice_of_loss(lost, &records));
    }
    let result = append(inner, folder, id, files, &mut records);
    let mut state = inner.state();
    let Some(log) = state.logs.get_mut(id) else {
        return result;
    };
    if result.is_ok() {
        log.lost -= lost;
        log.is_stuck = false;
        log.queued_bytes = log.queue.iter().map(queued_size).sum();
        log.room.notify_waiters();
    } else {
        if lost > 0 {
            records.pop();
        }
        records.append(&mut log.queue);
        log.queue = records;
    }
    // Also after a failure: waiters for this batch need not wait for the next.
    let taken = log.taken;
    log.written.send_replace(taken);
    if result.is_err() {
        state.dirty.insert(id.clone());
    }
    result
}

fn append(
    inner: &Inner,
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
            let log = LogFiles::open(&folder.join(id.as_str()), inner.bounds)?;
            entry.insert((log, now))
        }
    };
    *used = now;
    log.append(&inner.writer, records)
}

/// Says in the log itself that lines are missing there.
fn notice_of_loss(lost: u64, records: &[Record]) -> Record {
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
