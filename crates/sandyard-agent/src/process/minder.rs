//! The minder: a process between the agent and one command.
//!
//! ```text
//!  agent ──fork──▶ minder (sub-reaper) ──fork──▶ command ──▶ anything it starts, daemons too
//!    ▲               │
//!    └── status pipe ┘   Started(pid) | Failed(stage, errno), then Ended(wait status)
//! ```
//!
//! Because it is a sub-reaper, whatever the command starts stays below it however often it forks, so the whole tree can
//! be found and killed. When the command ends by itself the minder leaves, and background children live on below the
//! sandbox's first process. When a kill of the tree was announced (`SIGUSR1`) it stays until nobody is left.
//!
//! It is a fork without exec: it shares the agent's pages and must only make system calls.

use std::ffi::{CStr, c_char, c_int};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::pipe::PipeFlags;
use rustix::process::Pid;

use super::command::Command;
use super::stdio::ChildStdio;

/// What the minder reports: four bytes of kind, four of value, four of detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// The command runs.
    Started { pid: i32 },
    /// It could not be made to run.
    Failed { stage: Stage, errno: i32 },
    /// It ended, with this status as `wait` gives it.
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
    fn encode(self) -> [u8; REPORT_BYTES] {
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

/// A minder as the agent sees it.
#[derive(Debug)]
pub(super) struct Minder {
    pub(super) pid: Pid,
    /// Where it reports; closed when it is gone.
    pub(super) status: OwnedFd,
}

/// Forks a minder for a command. The child's ends of its input and output are closed here afterwards.
pub(super) fn fork_minder(command: &Command, stdio: ChildStdio) -> io::Result<Minder> {
    let (status, report_to) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&status, true)?;
    let pointers = Pointers::new(command);
    let signals = BlockedSignals::block()?;
    // SAFETY: this process has one thread, so the child's memory is consistent.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            mind(command, &pointers, &stdio, report_to.as_raw_fd());
        }
        pid => {
            drop(signals);
            Ok(Minder {
                pid: Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?,
                status,
            })
        }
    }
}

/// Null-terminated arrays for `execve`, made before the fork.
struct Pointers {
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
}

impl Pointers {
    fn new(command: &Command) -> Self {
        let terminated = |strings: &[std::ffi::CString]| {
            let pointers = strings.iter().map(|text| text.as_ptr());
            pointers.chain([ptr::null()]).collect()
        };
        Self {
            argv: terminated(&command.argv),
            env: terminated(&command.env),
        }
    }
}

/// All signals blocked, until dropped.
///
/// Between fork and the reset of dispositions a signal would run the agent's handlers in the child.
struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    fn block() -> io::Result<Self> {
        let mut all = empty_signals();
        let mut before = empty_signals();
        // SAFETY: both sets are valid for the calls.
        let failed = unsafe {
            libc::sigfillset(&mut all);
            libc::sigprocmask(libc::SIG_SETMASK, &all, &mut before)
        };
        if failed == 0 {
            Ok(Self(before))
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        set_signal_mask(&self.0);
    }
}

fn empty_signals() -> libc::sigset_t {
    // SAFETY: an all-zero set is what `sigemptyset` makes on Linux.
    unsafe { std::mem::zeroed() }
}

fn set_signal_mask(mask: &libc::sigset_t) {
    // SAFETY: the mask is valid and the old one is not asked for.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, mask, ptr::null_mut()) };
}

/// Set by `SIGUSR1`: the tree is being killed, stay until it is gone.
static STAY: AtomicBool = AtomicBool::new(false);

extern "C" fn note_stay(_signal: c_int) {
    STAY.store(true, Ordering::Relaxed);
}

/// The life of a minder.
fn mind(command: &Command, pointers: &Pointers, stdio: &ChildStdio, report_to: RawFd) -> ! {
    // SAFETY: plain system calls with constant arguments.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_NAME, c"minder".as_ptr());
    }
    let mut kept = stdio.raw();
    kept.push(report_to);
    close_all_but(&mut kept);
    reset_signals();
    install_stay();
    let started = fork_command(command, pointers, stdio);
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
    // SAFETY: ends this process at once, running nothing of the agent's.
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

/// Forks the command and waits until it has executed its program or failed to.
fn fork_command(
    command: &Command,
    pointers: &Pointers,
    stdio: &ChildStdio,
) -> Result<i32, (Stage, i32)> {
    let mut failure = [-1, -1];
    // SAFETY: the array has room for the two descriptors.
    if unsafe { libc::pipe2(failure.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err((Stage::Fork, errno()));
    }
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        -1 => Err((Stage::Fork, errno())),
        0 => {
            let (stage, errno) = become_command(command, pointers, stdio);
            send(failure[1], &Report::Failed { stage, errno }.encode());
            // SAFETY: ends this process at once.
            unsafe { libc::_exit(127) }
        }
        pid => {
            close(failure[1]);
            let mut bytes = [0; REPORT_BYTES];
            let reported = receive(failure[0], &mut bytes);
            close(failure[0]);
            match reported.then(|| Report::decode(bytes)).flatten() {
                Some(Report::Failed { stage, errno }) => Err((stage, errno)),
                _ => Ok(pid),
            }
        }
    }
}

/// Turns this process into the command; returns only when that failed, with what and why.
fn become_command(command: &Command, pointers: &Pointers, stdio: &ChildStdio) -> (Stage, i32) {
    // SAFETY: makes this process the leader of a session of its own.
    unsafe { libc::setsid() };
    if stdio.install().is_err() {
        return (Stage::Stdio, errno());
    }
    raise_oom_score(command);
    if let Err(errno) = take_identity(command) {
        return (Stage::Identity, errno);
    }
    // SAFETY: plain system calls; `cwd` is a C string. The death signal comes after the change of user, which clears it.
    let moved = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::umask(0o022);
        libc::chdir(command.cwd.as_ptr())
    };
    if moved != 0 {
        return (Stage::WorkingDirectory, errno());
    }
    // SAFETY: marks every further descriptor to be closed by exec; ours are 0, 1 and 2.
    unsafe { libc::close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC as c_int) };
    crate::limits::restore_in_child();
    set_signal_mask(&empty_signals());
    (Stage::Exec, exec(&command.programs, pointers))
}

fn exec(programs: &[std::ffi::CString], pointers: &Pointers) -> i32 {
    let mut failure = libc::ENOENT;
    for program in programs {
        // SAFETY: both arrays end with a null pointer and their strings live in `Command`.
        unsafe {
            libc::execve(
                program.as_ptr(),
                pointers.argv.as_ptr(),
                pointers.env.as_ptr(),
            )
        };
        match errno() {
            libc::ENOENT | libc::ENOTDIR => {}
            // As a shell does: remember it, something later on the path may do.
            libc::EACCES => failure = libc::EACCES,
            other => return other,
        }
    }
    failure
}

fn take_identity(command: &Command) -> Result<(), i32> {
    let Some(identity) = &command.identity else {
        return Ok(());
    };
    // SAFETY: the list is valid for its length.
    let grouped = unsafe { libc::setgroups(identity.groups.len(), identity.groups.as_ptr()) };
    // A user namespace may forbid this call; the groups it then keeps are those of the agent, which has none.
    if grouped != 0 && errno() != libc::EPERM {
        return Err(errno());
    }
    // SAFETY: plain system calls.
    if unsafe { libc::setgid(identity.gid) } != 0 || unsafe { libc::setuid(identity.uid) } != 0 {
        return Err(errno());
    }
    Ok(())
}

fn raise_oom_score(command: &Command) {
    let Some(score) = &command.oom_score_adj else {
        return;
    };
    const PATH: &CStr = c"/proc/self/oom_score_adj";
    // SAFETY: the path is a C string.
    let file = unsafe { libc::open(PATH.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
    if file >= 0 {
        // Best effort: a sandbox without /proc still runs commands.
        send(file, score.as_bytes());
        close(file);
    }
}

fn reset_signals() {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: default disposition; signals that have none to set are refused, which is fine.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

fn install_stay() {
    // SAFETY: an all-zero action has no flags, so that waits are interrupted, and an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = note_stay as *const () as usize;
    // SAFETY: the action is valid; its handler only stores to an atomic.
    unsafe { libc::sigaction(libc::SIGUSR1, &action, ptr::null_mut()) };
}

/// Closes every descriptor that is not in the list.
fn close_all_but(kept: &mut Vec<RawFd>) {
    kept.sort_unstable();
    kept.dedup();
    let mut next = 0;
    for &fd in kept.iter() {
        if fd > next {
            // SAFETY: closes numbers nobody in this process uses any more.
            unsafe { libc::close_range(next as u32, (fd - 1) as u32, 0) };
        }
        next = fd + 1;
    }
    // SAFETY: as above.
    unsafe { libc::close_range(next as u32, u32::MAX, 0) };
}

fn send(fd: RawFd, bytes: &[u8]) {
    // SAFETY: the buffer is valid. A report is far below what a pipe takes at once; nobody listening is no error here.
    unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
}

/// Reads one report; false when the other end closed without sending one.
fn receive(fd: RawFd, bytes: &mut [u8; REPORT_BYTES]) -> bool {
    loop {
        // SAFETY: the buffer is valid for its length.
        let count = unsafe { libc::read(fd, bytes.as_mut_ptr().cast(), bytes.len()) };
        if count >= 0 || errno() != libc::EINTR {
            return count == REPORT_BYTES as isize;
        }
    }
}

fn close(fd: RawFd) {
    // SAFETY: the number is this process's own to close.
    unsafe { libc::close(fd) };
}

fn errno() -> i32 {
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
