//! Finding and killing all processes below a supervisor.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::process::{Pid, PidfdFlags, Signal};

use crate::fs;

/// How long to retry; a process that is stuck in the kernel for longer dies when it leaves the kernel.
const KILL_TIMEOUT: Duration = Duration::from_secs(60);

/// Kills every descendant of a supervisor, including daemons, and returns when none is left.
///
/// Each pass kills what it finds. The next pass finds processes that were forked meanwhile, because a child of a dead
/// process becomes a child of the supervisor, which stays until all are gone.
pub(super) async fn kill_descendants(supervisor: Pid) {
    // Announced first, so that the supervisor does not exit with the command and release the others from the tree.
    if rustix::process::kill_process(supervisor, Signal::USR1).is_err() {
        return;
    }
    let started = tokio::time::Instant::now();
    let mut pause = Duration::from_millis(1);
    while kill_pass(supervisor) > 0 && started.elapsed() < KILL_TIMEOUT {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

/// Kills all current descendants; returns how many were still alive.
fn kill_pass(supervisor: Pid) -> usize {
    let parents = parents();
    if parents.is_empty() {
        // Without /proc the tree is invisible; at least the command dies with its supervisor.
        let _ = rustix::process::kill_process(supervisor, Signal::KILL);
        return 0;
    }
    let found = descendants(supervisor.as_raw_nonzero().get(), &parents);
    let pids = found.into_iter().filter_map(Pid::from_raw);
    pids.filter(|&pid| kill_if_still(pid, &parents)).count()
}

/// Kills one process, unless its pid was reused since it was found.
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

/// All descendants of a process, parents before their children: a shell that sees its child killed would continue with its
/// next line or end with its own code.
fn descendants(ancestor: i32, parents: &HashMap<i32, i32>) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for (&pid, &parent) in parents {
        children.entry(parent).or_default().push(pid);
    }
    let mut found = Vec::new();
    let mut next = vec![ancestor];
    while let Some(pid) = next.pop() {
        // Removed, so that a cycle ends: the table is not a snapshot, so it may have one.
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

/// The parent of a process; `None` when it is dead or a zombie.
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
    fn the_parent_is_found_behind_a_name_with_parentheses() {
        assert_eq!(parse_stat(b"12 (a) 9 (b) S 7 1 1 0"), Some(7));
        assert_eq!(parse_stat(b"12 (\xff\xfe) R 3 1"), Some(3));
    }

    #[test]
    fn the_dead_are_not_counted() {
        assert_eq!(parse_stat(b"12 (x) Z 7 1 1 0"), None);
        assert_eq!(parse_stat(b"garbage"), None);
    }

    #[test]
    fn descendants_are_listed_top_down_and_cycles_end() {
        let parents = HashMap::from([(5, 4), (4, 3), (3, 2), (8, 9), (9, 8)]);
        assert_eq!(descendants(2, &parents), [3, 4, 5]);
        assert_eq!(descendants(4, &parents), [5]);
        assert!(descendants(5, &parents).is_empty());
        assert_eq!(descendants(8, &parents), [9, 8]);
    }
}
