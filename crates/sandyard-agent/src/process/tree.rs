//! Finding and killing everything below a minder.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::process::{Pid, PidfdFlags, Signal};

use crate::fs;

/// How long to keep trying; what is stuck in the kernel that long dies when it comes out of it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Kills every descendant of a minder, those that made themselves daemons too, and returns when none is left.
///
/// Each pass kills what it finds; what forked meanwhile is found by the next, since a child of the dead becomes a child
/// of the minder, which stays until all are gone.
pub(super) async fn kill_below(minder: Pid) {
    // Announced first, so that the minder does not leave with the command and let others out of the tree.
    if rustix::process::kill_process(minder, Signal::USR1).is_err() {
        return;
    }
    let started = tokio::time::Instant::now();
    let mut pause = Duration::from_millis(1);
    while kill_pass(minder) > 0 && started.elapsed() < PATIENCE {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

/// Kills what is below the minder now; returns how many were still alive.
fn kill_pass(minder: Pid) -> usize {
    let parents = parents();
    if parents.is_empty() {
        // Without /proc the tree cannot be seen; the command at least dies with its minder.
        let _ = rustix::process::kill_process(minder, Signal::KILL);
        return 0;
    }
    let below = below(minder.as_raw_nonzero().get(), &parents);
    let pids = below.into_iter().filter_map(Pid::from_raw);
    pids.filter(|&pid| kill_if_still(pid, &parents)).count()
}

/// Kills one process, unless its number has gone to somebody else since it was seen.
fn kill_if_still(pid: Pid, parents: &HashMap<i32, i32>) -> bool {
    let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else {
        return false;
    };
    let raw = pid.as_raw_nonzero().get();
    // A changed parent means its parent died, or that it is another process: the next pass sees which.
    if living_parent(raw) == parents.get(&raw).copied() {
        let _ = rustix::process::pidfd_send_signal(handle.as_fd(), Signal::KILL);
    }
    true
}

/// Everybody below a process, parents before their children: a shell that sees its child killed would go on to its next
/// line or end with a code of its own.
fn below(ancestor: i32, parents: &HashMap<i32, i32>) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for (&pid, &parent) in parents {
        children.entry(parent).or_default().push(pid);
    }
    let mut found = Vec::new();
    let mut next = vec![ancestor];
    while let Some(pid) = next.pop() {
        // Taken out, so that a loop, conceivable as the table is no snapshot, ends.
        let below = children.remove(&pid).unwrap_or_default();
        found.extend(&below);
        next.extend(below);
    }
    found
}

/// The parent of every living process.
fn parents() -> HashMap<i32, i32> {
    let Ok(dir) = fs::open(Path::new("/proc"), OFlags::RDONLY | OFlags::DIRECTORY) else {
        return HashMap::new();
    };
    let Ok(entries) = rustix::fs::Dir::read_from(&dir) else {
        return HashMap::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str().ok()?.parse::<i32>().ok())
        .filter_map(|pid| Some((pid, living_parent(pid)?)))
        .collect()
}

/// The parent of a process; none when it is dead, a zombie included.
fn living_parent(pid: i32) -> Option<i32> {
    let stat = fs::read_small(Path::new(&format!("/proc/{pid}/stat")), 4096).ok()?;
    parse_stat(&stat)
}

/// Takes the parent out of a `stat` line; the name in it may hold any byte, parentheses and spaces too.
fn parse_stat(stat: &[u8]) -> Option<i32> {
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
    let rest = std::str::from_utf8(&stat[after_name..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found_behind_a_nasty_name() {
        assert_eq!(parse_stat(b"12 (a) 9 (b) S 7 1 1 0"), Some(7));
        assert_eq!(parse_stat(b"12 (\xff\xfe) R 3 1"), Some(3));
    }

    #[test]
    fn the_dead_are_not_counted() {
        assert_eq!(parse_stat(b"12 (x) Z 7 1 1 0"), None);
        assert_eq!(parse_stat(b"garbage"), None);
    }

    #[test]
    fn descent_is_followed_top_down_and_ends_in_loops() {
        let parents = HashMap::from([(5, 4), (4, 3), (3, 2), (8, 9), (9, 8)]);
        assert_eq!(below(2, &parents), [3, 4, 5]);
        assert_eq!(below(4, &parents), [5]);
        assert!(below(5, &parents).is_empty());
        assert_eq!(below(8, &parents), [9, 8]);
    }
}
