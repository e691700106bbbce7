//! Descriptors across a fork.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::check;

/// Closes every descriptor except the standard three and `keep`, and renumbers `keep` from 3 up.
///
/// A sandbox's first process must not hold the launcher's lock, a worker's connection or anything else of the host.
///
/// # Safety
/// No other owner of a descriptor may be used (or dropped) in this process afterwards.
pub(crate) unsafe fn keep_only(keep: Vec<OwnedFd>) -> io::Result<Vec<OwnedFd>> {
    // First to numbers above every target, so that moving down cannot overwrite one that is still to be moved.
    let floor = 3 + keep.len() as RawFd;
    let mut high = Vec::with_capacity(keep.len());
    for fd in &keep {
        // SAFETY: F_DUPFD takes integers only and `fd` is open.
        high.push(check(
            unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, floor) }.into(),
        )? as RawFd);
    }
    std::mem::forget(keep);
    let mut descriptors = Vec::with_capacity(high.len());
    for (index, fd) in high.into_iter().enumerate() {
        let target = 3 + index as RawFd;
        // SAFETY: dup3 takes integers only; whatever `target` was is given up, as the caller promised.
        check(unsafe { libc::dup3(fd, target, libc::O_CLOEXEC) }.into())?;
        // SAFETY: `target` was just made and has no other owner.
        descriptors.push(unsafe { OwnedFd::from_raw_fd(target) });
    }
    // SAFETY: integers only; the caller promised not to use what is closed here.
    check(unsafe {
        libc::syscall(
            libc::SYS_close_range,
            floor as libc::c_uint,
            libc::c_uint::MAX,
            0,
        )
    })?;
    Ok(descriptors)
}

/// Points the standard streams at `/dev/null`.
pub(crate) fn silence_standard_streams() -> io::Result<()> {
    let null = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    for target in 0..3 {
        // SAFETY: dup2 takes integers only; nobody owns the standard streams.
        check(unsafe { libc::dup2(null.as_raw_fd(), target) }.into())?;
    }
    Ok(())
}
