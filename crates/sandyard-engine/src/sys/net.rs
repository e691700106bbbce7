//! The sandbox's own network: a loopback link, up, and nothing else.

use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketType};
use rustix::thread::UnshareFlags;

use super::{Doing, SysResult, check};

/// Moves into a new network namespace.
pub(crate) fn leave_hosts_network() -> SysResult<()> {
    // SAFETY: a network namespace decides over sockets made from now on; no descriptor or memory is affected.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }
        .doing("leave", "the host's network")
}

/// Brings `lo` up in the current network namespace.
pub(crate) fn raise_loopback() -> SysResult<()> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)
        .doing("open socket for", "lo")?;
    // SAFETY: ifreq is plain data, for which all zeros is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the kernel reads one ifreq, which `request` is.
    check(
        unsafe {
            libc::ioctl(
                socket.as_raw_fd(),
                libc::SIOCSIFFLAGS as libc::Ioctl,
                &raw const request,
            )
        }
        .into(),
    )
    .doing("bring up", "lo")
    .map(drop)
}
