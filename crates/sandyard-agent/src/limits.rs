//! The agent's own limit of open files, raised for itself only.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Resource, Rlimit};

/// The limit that the agent wants: each process takes five descriptors, each connection one, and egress connections stay
/// only until the gateway has them.
const TARGET: u64 = 16 * 1024;

/// The soft limit commands get back; zero when it was not changed.
static SOFT_BEFORE: AtomicU64 = AtomicU64::new(0);

/// Raises the soft limit of open files as far as the hard one allows.
pub(crate) fn raise_open_files() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let (Some(soft), hard) = (limit.current, limit.maximum.unwrap_or(TARGET)) else {
        return;
    };
    let raised = Rlimit {
        current: Some(hard.min(TARGET)),
        maximum: limit.maximum,
    };
    if soft < hard.min(TARGET) && rustix::process::setrlimit(Resource::Nofile, raised).is_ok() {
        SOFT_BEFORE.store(soft, Ordering::Relaxed);
    }
}

/// How many files the agent may have open.
pub(crate) fn open_files() -> u64 {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    limit.current.unwrap_or(TARGET)
}

/// Gives a command the agent's original limit: programs that loop over all descriptors, or use `select`, expect
/// a small one.
pub(crate) fn restore_in_child() {
    let soft = SOFT_BEFORE.load(Ordering::Relaxed);
    if soft == 0 {
        return;
    }
    let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit {
        current: Some(soft),
        maximum,
    };
    // A failure here should not fail the command.
    let _ = rustix::process::setrlimit(Resource::Nofile, limit);
}
