//! Other processes: which one a process id means, whether it runs, and how to end it.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal};
use serde::{Deserialize, Serialize};

/// One process, distinguished from a later one with the same process id by its start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessKey {
    /// Its process id in the launcher's pid namespace.
    pub pid: i32,
    /// Clock ticks since boot at which it started (field 22 of `/proc/<pid>/stat`).
    pub start_ticks: u64,
}

impl ProcessKey {
    /// The process that has this id now.
    pub fn of(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The command name may hold spaces and parentheses; the last `)` ends it.
        let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
        let state = fields.next()?;
        if matches!(state, "Z" | "X") {
            return None;
        }
        Some(Self {
            pid,
            start_ticks: fields.nth(18)?.parse().ok()?,
        })
    }

    /// Says whether this process still runs.
    pub fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Opens a handle on it. `None`: it has ended.
    pub(crate) fn open(self) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return Ok(None);
        };
        match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            // The process id may have been reused just before the open.
            Ok(pidfd) if self.is_alive() => Ok(Some(pidfd)),
            Ok(_) => Ok(None),
            Err(rustix::io::Errno::SRCH | rustix::io::Errno::INVAL) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Kills a process and waits, up to `timeout`, until it has ended. Says whether it has.
pub(crate) fn kill_and_wait(pidfd: impl AsFd, timeout: Duration) -> io::Result<bool> {
    match rustix::process::pidfd_send_signal(&pidfd, Signal::KILL) {
        Ok(()) => {}
        Err(rustix::io::Errno::SRCH) => return Ok(true),
        Err(error) => return Err(error.into()),
    }
    wait_ended(pidfd, timeout)
}

/// Waits, up to `timeout`, until a process has ended. Says whether it has.
pub(crate) fn wait_ended(pidfd: impl AsFd, timeout: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + timeout;
    loop {
        let remaining = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: remaining.as_secs() as i64,
            tv_nsec: remaining.subsec_nanos().into(),
        };
        let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_another_start_time_is_another_process() {
        let own = ProcessKey::of(std::process::id() as i32).expect("this process runs");
        assert!(own.is_alive());
        assert!(
            !ProcessKey {
                start_ticks: own.start_ticks + 1,
                ..own
            }
            .is_alive()
        );
    }

    #[test]
    fn an_ended_process_counts_as_ended_before_it_is_reaped() {
        let mut child = std::process::Command::new("true")
            .spawn()
            .expect("start true");
        let key = ProcessKey {
            pid: child.id() as i32,
            start_ticks: 0,
        };
        let pidfd =
            rustix::process::pidfd_open(Pid::from_raw(key.pid).expect("pid"), PidfdFlags::empty())
                .expect("pidfd");
        assert!(wait_ended(pidfd, Duration::from_secs(60)).expect("poll"));
        assert_eq!(ProcessKey::of(key.pid), None);
        child.wait().expect("reap");
    }
}
