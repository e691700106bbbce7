//! `SIGTERM`, noted instead of ending the process.

use std::sync::atomic::{AtomicBool, Ordering};

static RECEIVED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_signal: libc::c_int) {
    RECEIVED.store(true, Ordering::Relaxed);
}

/// Installs the handler. A wait that the signal interrupts returns.
pub(crate) fn catch() {
    set(note as *const () as libc::sighandler_t);
}

/// In a fork: the signal ends the process again.
pub(crate) fn restore() {
    set(libc::SIG_DFL);
}

/// Says whether the signal was received.
pub(crate) fn is_requested() -> bool {
    RECEIVED.load(Ordering::Relaxed)
}

fn set(handler: libc::sighandler_t) {
    // SAFETY: sigaction is plain data, for which all zeros is a valid value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // No SA_RESTART: poll(2) must return.
    action.sa_sigaction = handler;
    // SAFETY: `action` is complete; `note` does nothing but store to an atomic, which is async-signal-safe.
    unsafe { libc::sigaction(libc::SIGTERM, &raw const action, std::ptr::null_mut()) };
}
