//! The supervisor: a process between the agent and one command.
//!
//! ```text
//!  agent ──fork──▶ supervisor (sub-reaper) ──fork──▶ command ──▶ anything it starts, daemons too
//!    ▲               │
//!    └── status pipe ┘   Started(pid) | Failed(stage, errno), then Ended(wait status)
//! ```
//!
//! A command with a terminal leads its session. One on pipes is a member of a session whose leader has exited, see `fork_member`.
//!
//! Because it is a sub-reaper, every process that the command starts stays below it, so the whole tree can be found and
//! killed. When the command ends normally the supervisor exits, and background children live on below the sandbox's first
//! process. After `SIGUSR1`, which announces a kill of the tree, it stays until the tree is empty.
//!
//! It is a fork without exec: it shares the agent's pages and must only make system calls.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::pipe::PipeFlags;
use rustix::process::Pid;

use super::child_task::ChildTask;
use super::report::{REPORT_BYTES, Report, Stage, close, errno, receive, send, wait_for_close};
use super::signals::{BlockedSignals, empty_signals, reset_signals, set_signal_mask};
use super::stdio::ChildStdio;

/// A supervisor, as the agent sees it.
#[derive(Debug)]
pub(super) struct Supervisor {
    pub(super) pid: Pid,
    /// The pipe of its reports; it is closed when the supervisor is gone.
    pub(super) status: OwnedFd,
}

/// Forks a supervisor for a task. The child's ends of its input and output are closed here afterwards.
pub(super) fn fork_supervisor(task: &dyn ChildTask, stdio: ChildStdio) -> io::Result<Supervisor> {
    let (status, report_to) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&status, true)?;
    let signals = BlockedSignals::block()?;
    // SAFETY: this process has one thread, so the child's memory is consistent.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            supervise(task, &stdio, report_to.as_raw_fd());
        }
        pid => {
            drop(signals);
            Ok(Supervisor {
                pid: Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?,
                status,
            })
        }
    }
}

/// Set by `SIGUSR1`: the tree is being killed, and the supervisor stays until it is gone.
static STAY: AtomicBool = AtomicBool::new(false);

extern "C" fn note_stay(_signal: c_int) {
    STAY.store(true, Ordering::Relaxed);
}

/// The main function of a supervisor.
fn supervise(task: &dyn ChildTask, stdio: &ChildStdio, report_to: RawFd) -> ! {
    // SAFETY: plain system calls with constant arguments.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_NAME, c"supervisor".as_ptr());
    }
    let mut inherited = stdio.raw();
    // The standard numbers stay open, or the pipe created below would get them and be overwritten in the command.
    inherited.extend([0, 1, 2, report_to]);
    inherited.extend(task.inherited_fds());
    close_all_but(&mut inherited);
    reset_signals();
    install_stay();
    let started = fork_command(task, stdio);
    close_all_but(&mut vec![report_to]);
    set_signal_mask(&empty_signals());
    let report = match started {
        Ok(pid) => Report::Started { pid },
        Err((stage, errno)) => Report::Failed { stage, errno },
    };
    send(report_to, &report.encode());
    if let Report::Started { pid } = report {
        reap_until_done(pid, report_to);
    }
    // SAFETY: ends this process at once, without running the agent's code.
    unsafe { libc::_exit(0) }
}

fn reap_until_done(command: i32, report_to: RawFd) {
    let mut running = true;
    while running || STAY.load(Ordering::Relaxed) {
        let mut status = 0;
        // SAFETY: `status` is valid for the call.
        match unsafe { libc::waitpid(-1, &mut status, 0) } {
            -1 if errno() == libc::EINTR => {}
            -1 => return,
            pid if pid == command => {
                running = false;
                send(report_to, &Report::Ended { status }.encode());
            }
            _ => {}
        }
    }
}

/// Forks the command and waits until its program runs, or failed to start.
fn fork_command(task: &dyn ChildTask, stdio: &ChildStdio) -> Result<i32, (Stage, i32)> {
    let (reports, report_to) = pipe()?;
    let (start, started) = pipe()?;
    let command = || {
        close(started);
        // Waits until the supervisor is the parent: the death of the first parent must not be taken for the supervisor's.
        wait_for_close(start);
        let (stage, errno) = task.run_in_child(stdio);
        send(report_to, &Report::Failed { stage, errno }.encode());
    };
    // SAFETY: this process has one thread.
    let pid = match unsafe { libc::fork() } {
        -1 => return Err((Stage::Fork, errno())),
        0 => {
            lead_session();
            if stdio.is_terminal() {
                command();
            } else {
                fork_member(report_to, command);
            }
            // SAFETY: ends this process at once.
            unsafe { libc::_exit(127) }
        }
        pid => pid,
    };
    close(report_to);
    close(start);
    if !stdio.is_terminal() {
        reap(pid);
    }
    close(started);
    let outcome = read_start(reports, pid);
    close(reports);
    outcome
}

/// Makes this process the leader of a session and of a process group.
fn lead_session() {
    // SAFETY: a plain system call.
    unsafe { libc::setsid() };
}

/// Forks the command out of the leader of its session, which then exits. A command on pipes must not lead its process group:
/// `setsid` would otherwise fork, and its parent exit before its output and exit code are there.
fn fork_member(report_to: RawFd, command: impl FnOnce()) {
    // SAFETY: this process has one thread.
    let report = match unsafe { libc::fork() } {
        -1 => Report::Failed {
            stage: Stage::Fork,
            errno: errno(),
        },
        0 => return command(),
        pid => Report::Started { pid },
    };
    send(report_to, &report.encode());
}

/// Reads reports until the program runs, which closes the pipe; `pid` is the command's unless a report names another.
fn read_start(reports: RawFd, mut pid: i32) -> Result<i32, (Stage, i32)> {
    let mut bytes = [0; REPORT_BYTES];
    let mut outcome = Ok(());
    while receive(reports, &mut bytes) {
        match Report::decode(bytes) {
            Some(Report::Started { pid: member }) => pid = member,
            Some(Report::Failed { stage, errno }) => outcome = Err((stage, errno)),
            _ => {}
        }
    }
    outcome.map(|()| pid)
}

fn pipe() -> Result<(RawFd, RawFd), (Stage, i32)> {
    let mut ends = [-1, -1];
    // SAFETY: the array has room for the two descriptors.
    match unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } {
        0 => Ok((ends[0], ends[1])),
        _ => Err((Stage::Fork, errno())),
    }
}

/// Waits for the end of a child, which becomes the supervisor of what it started.
fn reap(pid: i32) {
    // SAFETY: the status is not asked for.
    while unsafe { libc::waitpid(pid, ptr::null_mut(), 0) } < 0 && errno() == libc::EINTR {}
}

fn install_stay() {
    // SAFETY: an all-zero action has no flags, so that waits are interrupted, and an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = note_stay as *const () as usize;
    // SAFETY: the action is valid; its handler only stores to an atomic.
    unsafe { libc::sigaction(libc::SIGUSR1, &action, ptr::null_mut()) };
}

/// Closes every descriptor that is not in the list.
pub(super) fn close_all_but(inherited: &mut Vec<RawFd>) {
    inherited.sort_unstable();
    inherited.dedup();
    let mut next = 0;
    for &fd in inherited.iter() {
        if fd > next {
            // SAFETY: closes descriptors that this process no longer uses.
            unsafe { libc::close_range(next as u32, (fd - 1) as u32, 0) };
        }
        next = fd + 1;
    }
    // SAFETY: as above.
    unsafe { libc::close_range(next as u32, u32::MAX, 0) };
}
