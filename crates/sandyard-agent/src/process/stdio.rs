//! The ends of a command's input and output: pipes, or a terminal.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::pipe::PipeFlags;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use sandyard_wire::process::PtySize;

use super::ring::Channel;
use crate::fs;

/// The command's side.
#[derive(Debug)]
pub(super) enum ChildStdio {
    Pipes {
        stdin: OwnedFd,
        stdout: OwnedFd,
        stderr: OwnedFd,
    },
    Terminal(OwnedFd),
}

/// The agent's side; everything is non-blocking.
#[derive(Debug)]
pub(super) struct AgentStdio {
    pub(super) input: Option<OwnedFd>,
    pub(super) outputs: Vec<(Channel, OwnedFd)>,
    /// The terminal, for changing its size.
    pub(super) terminal: Option<OwnedFd>,
}

/// Creates three pipes; without input, the command reads an empty file.
pub(super) fn pipes(with_input: bool, owner: Option<u32>) -> io::Result<(ChildStdio, AgentStdio)> {
    let (stdin, input) = if with_input {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&write, true)?;
        (read, Some(write))
    } else {
        (empty_input()?, None)
    };
    let (stdout, child_stdout) = output_pipe()?;
    let (stderr, child_stderr) = output_pipe()?;
    for end in [&stdin, &child_stdout, &child_stderr] {
        set_owner(end, owner);
    }
    let child = ChildStdio::Pipes {
        stdin,
        stdout: child_stdout,
        stderr: child_stderr,
    };
    let agent = AgentStdio {
        input,
        outputs: vec![(Channel::Stdout, stdout), (Channel::Stderr, stderr)],
        terminal: None,
    };
    Ok((child, agent))
}

/// Creates a terminal.
pub(super) fn terminal(size: PtySize, owner: Option<u32>) -> io::Result<(ChildStdio, AgentStdio)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = rustix::pty::openpt(flags)?;
    rustix::pty::grantpt(&master)?;
    rustix::pty::unlockpt(&master)?;
    let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags)?;
    set_owner(&slave, owner);
    resize(&master, size)?;
    rustix::io::ioctl_fionbio(&master, true)?;
    let agent = AgentStdio {
        input: Some(rustix::io::fcntl_dupfd_cloexec(&master, 3)?),
        outputs: vec![(Channel::Pty, rustix::io::fcntl_dupfd_cloexec(&master, 3)?)],
        terminal: Some(master),
    };
    Ok((ChildStdio::Terminal(slave), agent))
}

/// Changes a terminal's size; programs on it get `SIGWINCH`.
pub(super) fn resize(terminal: &OwnedFd, size: PtySize) -> io::Result<()> {
    let cells = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
    Ok(rustix::termios::tcsetwinsize(
        terminal,
        Winsize {
            ws_row: cells(size.rows),
            ws_col: cells(size.cols),
            ws_xpixel: 0,
            ws_ypixel: 0,
        },
    )?)
}

/// Makes the command's user the owner, so that opening `/dev/stdout` or its terminal by name works for it.
fn set_owner(end: &OwnedFd, owner: Option<u32>) {
    let Some(uid) = owner else { return };
    let is_device = rustix::fs::fstat(end).is_ok_and(|stat| {
        let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
        kind == rustix::fs::FileType::CharacterDevice && !rustix::termios::isatty(end)
    });
    if !is_device {
        // Failure is harmless: the descriptors themselves work anyway.
        let _ = rustix::fs::fchown(end, Some(rustix::fs::Uid::from_raw(uid)), None);
    }
}

fn output_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&read, true)?;
    Ok((read, write))
}

/// A descriptor that reads as empty, also where there is no `/dev/null`.
fn empty_input() -> io::Result<OwnedFd> {
    fs::open(Path::new("/dev/null"), OFlags::RDONLY)
        .or_else(|_| Ok(rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?.0))
}

impl ChildStdio {
    /// The descriptors it holds.
    pub(super) fn raw(&self) -> Vec<RawFd> {
        match self {
            Self::Pipes {
                stdin,
                stdout,
                stderr,
            } => [stdin, stdout, stderr].map(AsRawFd::as_raw_fd).to_vec(),
            Self::Terminal(slave) => vec![slave.as_raw_fd()],
        }
    }

    /// Whether the command gets a terminal, whose session it then leads.
    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal(_))
    }

    /// Puts the ends on the standard numbers. Called in the child, after it became a session leader.
    pub(super) fn install(&self) -> Result<(), ()> {
        let raw = self.raw();
        if let Self::Terminal(slave) = self {
            // SAFETY: makes the terminal this session's own; the argument is ignored for a leader without one.
            if unsafe { libc::ioctl(slave.as_raw_fd(), libc::TIOCSCTTY, 0) } != 0 {
                return Err(());
            }
        }
        for target in 0..3 {
            let source = raw.get(target as usize).or(raw.first()).ok_or(())?;
            // SAFETY: duplicates onto a standard number; the sources are all above those.
            if unsafe { libc::dup2(*source, target) } < 0 {
                return Err(());
            }
        }
        Ok(())
    }
}
