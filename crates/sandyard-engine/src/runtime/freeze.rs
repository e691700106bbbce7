//! Freezes and thaws all processes of a sandbox.
//!
//! Through the cgroup if there is one: processes do not notice. Otherwise (an ordinary user without a delegated cgroup) by signals:
//! the parent of a stopped process may notice.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::context::Context;
use crate::error::{EngineError, ErrorKind, Result};
use crate::record::Record;
use crate::sys::OperationExt;

/// Passes over the process table before a sandbox that keeps forking is given up.
const PASSES: usize = 100;
/// How long to wait for processes in a system call: they stop at its end.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// Freezes all processes.
pub(crate) fn freeze(ctx: &Context, record: &Record) -> Result<()> {
    if !ctx.cgroups.support().freeze {
        let mark = mark(ctx, record);
        fs::write(&mark, "").operation("write", mark.display())?;
        return stop_by_signal(record);
    }
    let freeze = || ctx.cgroups.open(record.id.as_str())?.freeze();
    freeze().map_err(|error| EngineError::failed("freezing", &error))
}

/// Thaws all processes.
pub(crate) fn thaw(ctx: &Context, record: &Record) -> Result<()> {
    if !ctx.cgroups.support().freeze {
        continue_by_signal(record)?;
        let _ = fs::remove_file(mark(ctx, record));
        return Ok(());
    }
    let thaw = || ctx.cgroups.open(record.id.as_str())?.thaw();
    thaw().map_err(|error| EngineError::failed("thawing", &error))
}

/// Thaws them if we froze them. Without our mark, a stopped process was stopped by its own user.
pub(crate) fn thaw_if_frozen(ctx: &Context, record: &Record) -> Result<()> {
    if ctx.cgroups.support().freeze || mark(ctx, record).exists() {
        return thaw(ctx, record);
    }
    Ok(())
}

fn mark(ctx: &Context, record: &Record) -> PathBuf {
    ctx.data.sandbox(&record.id).run().join("frozen")
}

fn stop_by_signal(record: &Record) -> Result<()> {
    let mut stopped = BTreeSet::new();
    // The first process is stopped last, since it reaps the others.
    for _ in 0..PASSES {
        let new: Vec<i32> = descendants(record)
            .into_iter()
            .filter(|pid| stopped.insert(*pid))
            .collect();
        if new.is_empty() {
            wait_until_stopped(&stopped);
            return Ok(());
        }
        for pid in new.into_iter().rev() {
            signal(pid, Signal::STOP)?;
        }
    }
    Err(EngineError::new(
        ErrorKind::Failed,
        "the sandbox starts processes faster than they can be stopped",
    ))
}

/// Waits until all have stopped. A process handles a signal at the end of a system call, so a write that has begun is completed.
fn wait_until_stopped(pids: &BTreeSet<i32>) {
    let deadline = Instant::now() + STOP_TIMEOUT;
    while !pids.iter().all(|pid| is_stopped(*pid)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether every thread of a process is stopped or gone.
fn is_stopped(pid: i32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter();
    tasks.flatten().flatten().all(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let state = stat
            .rsplit_once(')')
            .map_or("", |(_, rest)| rest.trim_start());
        state.is_empty() || state.starts_with(['T', 't', 'Z', 'X'])
    })
}

fn continue_by_signal(record: &Record) -> Result<()> {
    descendants(record)
        .into_iter()
        .try_for_each(|pid| signal(pid, Signal::CONT))
}

fn signal(pid: i32, signal: Signal) -> Result<()> {
    let Some(pid) = Pid::from_raw(pid) else {
        return Ok(());
    };
    match kill_process(pid, signal) {
        Err(rustix::io::Errno::SRCH) => Ok(()),
        other => Ok(other.operation("signal process", pid.as_raw_nonzero())?),
    }
}

/// The first process and its descendants. In a pid namespace the first process adopts orphans, so these are all processes.
fn descendants(record: &Record) -> Vec<i32> {
    let Some(init) = record.init.filter(|init| init.is_alive()) else {
        return Vec::new();
    };
    let mut found = vec![init.pid];
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        next += 1;
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
            continue;
        };
        for task in tasks.flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(
                children
                    .split_ascii_whitespace()
                    .filter_map(|child| child.parse::<i32>().ok()),
            );
        }
    }
    found
}
