//! Reports over a pipe: from a supervisor to the agent, and from a command that failed to start to its supervisor.

use std::io;
use std::os::fd::RawFd;

/// A report: four bytes of kind, four of value, four of detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// The command runs.
    Started { pid: i32 },
    /// The command could not be started.
    Failed { stage: Stage, errno: i32 },
    /// The command ended, with this `wait` status.
    Ended { status: i32 },
}

/// What was being done when a command failed to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Fork,
    Stdio,
    Identity,
    WorkingDirectory,
    Exec,
}

pub(super) const REPORT_BYTES: usize = 12;

impl Report {
    pub(super) fn encode(self) -> [u8; REPORT_BYTES] {
        let (kind, value, detail) = match self {
            Self::Started { pid } => (1, pid, 0),
            Self::Failed { stage, errno } => (2, stage as i32, errno),
            Self::Ended { status } => (3, status, 0),
        };
        let mut bytes = [0; REPORT_BYTES];
        for (chunk, number) in bytes.chunks_exact_mut(4).zip([kind, value, detail]) {
            chunk.copy_from_slice(&i32::to_ne_bytes(number));
        }
        bytes
    }

    pub(super) fn decode(bytes: [u8; REPORT_BYTES]) -> Option<Self> {
        let number = |at: usize| {
            let four = bytes[at..at + 4].try_into().expect("slices of four bytes");
            i32::from_ne_bytes(four)
        };
        Some(match number(0) {
            1 => Self::Started { pid: number(4) },
            2 => Self::Failed {
                stage: Stage::from_number(number(4))?,
                errno: number(8),
            },
            3 => Self::Ended { status: number(4) },
            _ => return None,
        })
    }
}

impl Stage {
    fn from_number(number: i32) -> Option<Self> {
        [
            Self::Fork,
            Self::Stdio,
            Self::Identity,
            Self::WorkingDirectory,
            Self::Exec,
        ]
        .into_iter()
        .find(|stage| *stage as i32 == number)
    }
}

pub(super) fn send(fd: RawFd, bytes: &[u8]) {
    // SAFETY: the buffer is valid. A report is far below what a pipe takes at once; a closed pipe is ignored.
    unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
}

/// Reads one report; false when the other end closed without sending one.
pub(super) fn receive(fd: RawFd, bytes: &mut [u8; REPORT_BYTES]) -> bool {
    loop {
        // SAFETY: the buffer is valid for its length.
        let count = unsafe { libc::read(fd, bytes.as_mut_ptr().cast(), bytes.len()) };
        if count >= 0 || errno() != libc::EINTR {
            return count == REPORT_BYTES as isize;
        }
    }
}

/// Waits until the other end is closed.
pub(super) fn wait_for_close(fd: RawFd) {
    receive(fd, &mut [0; REPORT_BYTES]);
    close(fd);
}

pub(super) fn close(fd: RawFd) {
    // SAFETY: the number is this process's own to close.
    unsafe { libc::close(fd) };
}

pub(super) fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_survive_the_pipe() {
        for report in [
            Report::Started { pid: 42 },
            Report::Failed {
                stage: Stage::Exec,
                errno: 2,
            },
            Report::Ended { status: 256 },
        ] {
            assert_eq!(Report::decode(report.encode()), Some(report));
        }
        assert_eq!(Report::decode([0xff; REPORT_BYTES]), None);
    }
}
