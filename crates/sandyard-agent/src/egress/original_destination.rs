//! The original destination of a redirected connection.

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::{self, MaybeUninit};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};

use super::local_address;

/// `SO_ORIGINAL_DST` and `IP6T_SO_ORIGINAL_DST` of the kernel's connection tracking.
const ORIGINAL_DESTINATION: c_int = 80;

/// The destination that the program named; `None` when the connection was not redirected.
pub(super) fn original_destination(connection: BorrowedFd<'_>) -> Option<SocketAddr> {
    let local = local_address(connection)?;
    let original = match local {
        SocketAddr::V4(_) => original_v4(connection),
        SocketAddr::V6(_) => original_v6(connection),
    };
    original.ok().filter(|original| *original != local)
}

fn original_v4(connection: BorrowedFd<'_>) -> io::Result<SocketAddr> {
    // SAFETY: the option's value is this type.
    let address: libc::sockaddr_in = unsafe { option(connection, libc::SOL_IP) }?;
    let ip = Ipv4Addr::from_bits(u32::from_be(address.sin_addr.s_addr));
    Ok(SocketAddr::from((ip, u16::from_be(address.sin_port))))
}

fn original_v6(connection: BorrowedFd<'_>) -> io::Result<SocketAddr> {
    // SAFETY: the option's value is this type.
    let address: libc::sockaddr_in6 = unsafe { option(connection, libc::SOL_IPV6) }?;
    let ip = Ipv6Addr::from(address.sin6_addr.s6_addr);
    Ok(SocketAddr::from((ip, u16::from_be(address.sin6_port))))
}

/// Reads the option.
///
/// # Safety
///
/// At this level the option's value has to be a `T`.
unsafe fn option<T>(connection: BorrowedFd<'_>, level: c_int) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let size = mem::size_of::<T>();
    let mut length = size as libc::socklen_t;
    // SAFETY: the value has room for `length` bytes, and both live through the call.
    let done = unsafe {
        libc::getsockopt(
            connection.as_raw_fd(),
            level,
            ORIGINAL_DESTINATION,
            value.as_mut_ptr().cast::<c_void>(),
            &mut length,
        )
    };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    if length as usize != size {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // SAFETY: the kernel has filled in all of it, as the caller promises with a `T`.
    Ok(unsafe { value.assume_init() })
}
