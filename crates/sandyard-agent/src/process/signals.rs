//! Masks and dispositions of signals around a fork.

use std::io;
use std::ptr;

/// All signals blocked, until dropped.
///
/// Between fork and the reset of dispositions a signal would run the agent's handlers in the child.
pub(super) struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    pub(super) fn block() -> io::Result<Self> {
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

pub(super) fn empty_signals() -> libc::sigset_t {
    // SAFETY: an all-zero set is what `sigemptyset` makes on Linux.
    unsafe { std::mem::zeroed() }
}

pub(super) fn set_signal_mask(mask: &libc::sigset_t) {
    // SAFETY: the mask is valid and the old one is not asked for.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, mask, ptr::null_mut()) };
}

/// Gives every signal its default disposition.
pub(super) fn reset_signals() {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: default disposition; signals that have none to set are refused, which is fine.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// The `SIGCHLD` handler of this process, which tokio installs once and relies on from then on.
pub(super) struct ChildSignalHandler(libc::sigaction);

impl ChildSignalHandler {
    pub(super) fn current() -> Self {
        // SAFETY: an all-zero action is the default one.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: the action is valid for the call, which changes nothing.
        unsafe { libc::sigaction(libc::SIGCHLD, ptr::null(), &mut action) };
        Self(action)
    }

    pub(super) fn install(&self) {
        // SAFETY: the action was in force in this program before the fork.
        unsafe { libc::sigaction(libc::SIGCHLD, &self.0, ptr::null_mut()) };
    }
}
