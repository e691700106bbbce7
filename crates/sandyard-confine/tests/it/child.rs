//! Runs closures in forked children.
//!
//! The test harness has threads, so a child must not panic, print or take locks of the standard library: it reports
//! through a pipe. Allocating is fine: the C library keeps its heap usable across a fork.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::pipe::PipeFlags;
use rustix::process::Pid;

/// A child that is killed and reaped when dropped.
pub(crate) struct Child {
    pub(crate) pid: libc::pid_t,
    report: OwnedFd,
}

/// Starts a child. What the closure returns as an error is what [`Child::result`] gives.
pub(crate) fn start(work: impl FnOnce() -> Result<(), String>) -> Child {
    let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
    let (reader, writer) = rustix::pipe::pipe_with(flags).expect("a pipe");
    // SAFETY: the child calls the closure and leaves by _exit; see the module's text for what closures may do.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        0 => {
            let code = match work() {
                Ok(()) => 0,
                Err(message) => {
                    let _ = rustix::io::write(writer.as_fd(), message.as_bytes());
                    1
                }
            };
            // SAFETY: ends the process with no handlers of the parent's copied state run.
            unsafe { libc::_exit(code) }
        }
        pid => Child {
            pid,
            report: reader,
        },
    }
}

/// Runs a child to its end and panics with what it reports.
#[track_caller]
pub(crate) fn run(work: impl FnOnce() -> Result<(), String>) {
    let mut child = start(work);
    let (status, report) = child.result();
    assert!(
        status.success() && report.is_empty(),
        "child: {status}: {report}"
    );
}

impl Child {
    /// Waits for the end; gives the status and the error reported.
    pub(crate) fn result(&mut self) -> (ExitStatus, String) {
        let status = self.wait();
        let mut report = vec![0; 4096];
        // Not to its end: others forked meanwhile may hold the pipe open. What the child wrote is there by now.
        let count = rustix::io::read(&self.report, &mut report).unwrap_or(0);
        report.truncate(count);
        (status, String::from_utf8_lossy(&report).into_owned())
    }

    fn wait(&mut self) -> ExitStatus {
        let mut status = 0;
        // SAFETY: `status` is a live integer; the pid is our own child's.
        let reaped = unsafe { libc::waitpid(self.pid, &raw mut status, 0) };
        assert_eq!(reaped, self.pid);
        self.pid = 0;
        ExitStatus::from_raw(status)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.pid) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            self.wait();
        }
    }
}

/// Sleeps until killed.
pub(crate) fn sleep_for_ever() -> Result<(), String> {
    loop {
        std::thread::sleep(std::time::Duration::from_secs(3600));
    }
}

/// Waits until something is so, or panics.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut ready: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while !ready() {
        assert!(std::time::Instant::now() < deadline, "never came: {what}");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Makes an error of anything, for closures.
pub(crate) fn message(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}
