//! Processes seen from outside: which one a number means, whether it lives, and how to end it.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal};
use serde::{Deserialize, Serialize};

/// One process, told apart from a later one of the same number by its start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessKey {
    /// Its number in the launcher's pid namespace.
    pub pid: i32,
    /// Clock ticks since boot at which it started (field 22 of `/proc/<pid>/stat`).
    pub start_ticks: u64,
}

impl ProcessKey {
    /// Names the process that has number `pid` now.
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

    /// Says whether this very process still runs.
    pub fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Opens a handle on it; `None` when it is gone.
    pub(crate) fn open(self) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return Ok(None);
        };
        match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            // The number may have been given out again between our look and the open.
            Ok(pidfd) if self.is_alive() => Ok(Some(pidfd)),
            Ok(_) => Ok(None),
            Err(rustix::io::Errno::SRCH | rustix::io::Errno::INVAL) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Ends a process and waits, up to `patience`, until it is gone. Says whether it is.
pub(crate) fn kill_and_wait(pidfd: impl AsFd, patience: Duration) -> io::Result<bool> {
    match rustix::process::pidfd_send_signal(&pidfd, Signal::KILL) {
        Ok(()) => {}
        Err(rustix::io::Errno::SRCH) => return Ok(true),
        Err(error) => return Err(error.into()),
    }
    wait_gone(pidfd, patience)
}

/// Waits, up to `patience`, until a process has ended. Says whether it has.
pub(crate) fn wait_gone(pidfd: impl AsFd, patience: Duration) -> io::Result<bool> {
    let give_up = Instant::now() + patience;
    loop {
        let left = give_up.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
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
    fn an_ended_process_is_gone_even_before_it_is_reaped() {
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
        assert!(wait_gone(pidfd, Duration::from_secs(60)).expect("poll"));
        assert_eq!(ProcessKey::of(key.pid), None);
        child.wait().expect("reap");
    }
}
