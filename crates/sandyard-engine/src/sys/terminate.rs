//! The wish to end, as `SIGTERM` brings it.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_signal: libc::c_int) {
    ASKED.store(true, Ordering::Relaxed);
}

/// From now on the signal is noted instead of ending the process. A wait that it interrupts returns.
pub(crate) fn catch() {
    set(note as *const () as libc::sighandler_t);
}

/// In a fork: the signal ends the process again.
pub(crate) fn restore() {
    set(libc::SIG_DFL);
}

/// Says whether the signal came.
pub(crate) fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

fn set(handler: libc::sighandler_t) {
    // SAFETY: sigaction is plain data, for which all zeros is a valid value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // No SA_RESTART: poll(2) is to return.
    action.sa_sigaction = handler;
    // SAFETY: `action` is complete; `note` does nothing but store to an atomic, which is async-signal-safe.
    unsafe { libc::sigaction(libc::SIGTERM, &raw const action, std::ptr::null_mut()) };
}
