//! Refusing descriptors on a Unix socket.
//!
//! A descriptor that nobody asked for is closed by the kernel in the thread that reads the bytes it came with, and the sender can make
//! that close take long: a socket that lingers, a large file without a name.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// `SO_PASSRIGHTS` of x86_64 and aarch64, in Linux since 6.16.
const SO_PASSRIGHTS: libc::c_int = 83;

/// Makes every send of a descriptor to this socket fail with `EPERM` at the sender. Call it before the socket is connected.
///
/// # Errors
/// `ENOPROTOOPT` before Linux 6.16.
pub fn refuse(socket: impl AsFd) -> io::Result<()> {
    let off: libc::c_int = 0;
    // SAFETY: the kernel reads one `int` from `off`, which outlives the call, and writes nothing.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PASSRIGHTS,
            (&raw const off).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
