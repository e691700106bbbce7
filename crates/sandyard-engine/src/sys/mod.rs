//! The system calls of the engine, each behind a safe function whose error says what it was doing.
//!
//! All `unsafe` code of this crate is here, except around forks (`launcher`, `init`, `kernel::Linux`).

pub(crate) mod clone;
pub(crate) mod effective_user;
pub(crate) mod ext4;
pub(crate) mod fds;
pub(crate) mod icmp;
pub(crate) mod idmap;
pub(crate) mod lock;
pub(crate) mod loopdev;
pub(crate) mod mount;
pub(crate) mod net;
pub(crate) mod process;
pub(crate) mod socket;
pub(crate) mod terminate;
pub(crate) mod title;

use std::fmt::Display;
use std::io;

/// A failed system call, with what it was for.
#[derive(Debug, thiserror::Error)]
#[error("failed to {operation} `{target}`")]
pub struct SysError {
    /// The verb: `mount overlay on`, `write`, …
    pub operation: &'static str,
    /// The object of the verb.
    pub target: String,
    /// The kernel's error.
    #[source]
    pub source: io::Error,
}

impl SysError {
    /// The kernel's error number, if there is one.
    pub fn raw_os_error(&self) -> Option<i32> {
        self.source.raw_os_error()
    }
}

/// Result of a system call.
pub(crate) type SysResult<T> = Result<T, SysError>;

/// Adds what a call was for to its error.
pub(crate) trait OperationExt<T> {
    /// Adds the verb and its object to a failure.
    fn operation(self, operation: &'static str, target: impl Display) -> SysResult<T>;
}

impl<T, E: Into<io::Error>> OperationExt<T> for Result<T, E> {
    fn operation(self, operation: &'static str, target: impl Display) -> SysResult<T> {
        self.map_err(|source| SysError {
            operation,
            target: target.to_string(),
            source: source.into(),
        })
    }
}

/// Turns the C convention (-1 and `errno`) into a result.
pub(crate) fn check(returned: libc::c_long) -> io::Result<libc::c_long> {
    if returned == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(returned)
    }
}

/// Makes the kernel write a file's data to disk. Unlike `fsync`, this does not flush the disk's own cache: it is for speed later,
/// not for safety.
pub(crate) fn write_out(file: &std::fs::File) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: integers only, on an open descriptor.
    check(unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, flags) }.into()).map(drop)
}
