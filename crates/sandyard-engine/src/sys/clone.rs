//! Processes made by `clone3` and `fork`, and the conditions for that to be sound.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::{check, effective_user};

/// From `linux/sched.h`; the one of `libc` does not fit its type.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// The two sides of a fork.
#[derive(Debug)]
pub(crate) enum Forked {
    /// The caller.
    Parent {
        /// The new process.
        pid: i32,
    },
    /// The new process.
    Child,
}

/// Forks this process.
///
/// The launcher and its workers have a single thread by design, so the child may go on using the allocator and locks: no
/// other thread can have held them at the moment of the fork.
pub(crate) fn fork() -> io::Result<Forked> {
    debug_assert!(is_single_threaded(), "fork in a process with threads");
    // SAFETY: fork has no memory arguments; the process is single-threaded, so the child's memory is consistent.
    match check(unsafe { libc::fork() }.into())? {
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent { pid: pid as i32 }),
    }
}

/// The new process, as [`clone_into_namespaces`] returns it to the caller.
#[derive(Debug)]
pub(crate) struct Cloned {
    /// The new process as seen from here.
    pub(crate) pid: i32,
    /// A handle that cannot be confused with a later process of the same number.
    pub(crate) pidfd: OwnedFd,
}

/// Clones this process into new namespaces (none, without flags). `None` in the child.
///
/// The child starts in `cgroup` (of version 2) if one is given. It becomes a child of *our parent* (`CLONE_PARENT`): the launcher
/// reaps it, and it outlives the worker that made it. As for [`fork`], the process must have a single thread.
pub(crate) fn clone_into_namespaces(
    flags: i32,
    cgroup: Option<BorrowedFd<'_>>,
) -> io::Result<Option<Cloned>> {
    debug_assert!(is_single_threaded(), "clone in a process with threads");
    let mut raw_pidfd: libc::c_int = -1;
    // SAFETY: clone_args is plain integers, for which all zeros is a valid value.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = flags as u32 as u64 | (libc::CLONE_PIDFD | libc::CLONE_PARENT) as u64;
    if let Some(cgroup) = cgroup {
        // Moving a process between groups later takes a lock that can cost milliseconds.
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = cgroup.as_raw_fd() as u64;
    }
    args.pidfd = &raw mut raw_pidfd as u64;
    // With CLONE_PARENT the exit signal is the caller's own and must be given as 0.
    args.exit_signal = 0;
    // SAFETY: `args` lives across the call and its size is passed; without CLONE_VM the child has its own copy of memory
    // and stack, as after fork; `raw_pidfd` is a valid place for the kernel to write to.
    let pid = check(unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw mut args,
            size_of::<libc::clone_args>(),
        )
    })?;
    if pid == 0 {
        return Ok(None);
    }
    // SAFETY: the kernel filled in a descriptor that nobody else owns.
    let pidfd = unsafe { OwnedFd::from_raw_fd(raw_pidfd) };
    Ok(Some(Cloned {
        pid: pid as i32,
        pidfd,
    }))
}

/// The same, with a user namespace that belongs to the user `owner`.
///
/// The kernel counts what is used inside (POSIX queues, timers, inotify instances, …) for the namespace's owner as well.
pub(crate) fn clone_with_owner(
    flags: i32,
    cgroup: Option<BorrowedFd<'_>>,
    owner: u32,
) -> io::Result<Option<Cloned>> {
    effective_user::become_user(owner)?;
    let cloned = clone_into_namespaces(flags, cgroup);
    // The child cannot return to host root: that user does not exist in its namespace.
    if !matches!(cloned, Ok(None)) {
        effective_user::restore()?;
    }
    cloned
}

fn is_single_threaded() -> bool {
    std::fs::read_dir("/proc/self/task").map_or(true, |tasks| tasks.count() == 1)
}
