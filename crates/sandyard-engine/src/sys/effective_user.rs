//! Changes the effective user for one system call, with all capabilities kept.

use std::io;

use rustix::process::{DumpableBehavior, Uid};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities, set_thread_res_uid};

/// Needed to return to root, and to inspect a process of another user later.
const NEEDED: CapabilitySet = CapabilitySet::SETUID.union(CapabilitySet::SYS_PTRACE);

/// Says whether this process is root and may act as another user.
pub(crate) fn is_available() -> bool {
    rustix::process::getuid().is_root()
        && rustix::process::geteuid().is_root()
        && capabilities(None).is_ok_and(|sets| sets.effective.contains(NEEDED))
}

/// Becomes the effective user `uid`. The real user stays root, which is what allows [`restore`].
pub(crate) fn become_user(uid: u32) -> io::Result<()> {
    set_thread_res_uid(Uid::ROOT, Uid::from_raw(uid), Uid::ROOT)?;
    // On failure, return to root.
    keep_capabilities().inspect_err(|_| drop(restore()))
}

fn keep_capabilities() -> io::Result<()> {
    // Leaving user 0 empties the effective set and leaves the permitted one (capabilities(7)).
    let sets = capabilities(None)?;
    set_capabilities(
        None,
        rustix::thread::CapabilitySets {
            effective: sets.permitted,
            ..sets
        },
    )?;
    keep_dumpable()
}

/// Becomes root again, with all permitted capabilities in effect.
pub(crate) fn restore() -> io::Result<()> {
    set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT)?;
    keep_dumpable()
}

/// Every change of the effective user makes a process undumpable, which gives its files in `/proc` another owner.
fn keep_dumpable() -> io::Result<()> {
    Ok(rustix::process::set_dumpable_behavior(
        DumpableBehavior::Dumpable,
    )?)
}
