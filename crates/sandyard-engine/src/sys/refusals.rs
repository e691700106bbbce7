//! Sockets that hear of packets which the sandbox's own network refused.
//!
//! Whoever sends such a packet is told so by ICMP, and raw sockets get a copy of that, with the head of the packet in it. A
//! packet socket would see the packets themselves, but closing one makes the kernel wait for a grace period (`packet_release`): some
//! ten milliseconds at the end of every sandbox.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, ipproto};

use super::check;

/// What is passed on: enough for two headers of IP, that of ICMP, and the ports.
const MOST_BYTES: u32 = 256;
/// Room for what is not read yet. The kernel doubles it for its own needs; what does not fit is lost, and may be.
const BUFFER_BYTES: i32 = 16 * 1024;

/// Opens them in the current network namespace: one of IPv4, and one of IPv6 if there is any.
pub(crate) fn hear() -> io::Result<Vec<OwnedFd>> {
    let mut sockets = vec![open(AddressFamily::INET, ipproto::ICMP, &mut of_ipv4())?];
    match open(AddressFamily::INET6, ipproto::ICMPV6, &mut of_ipv6()) {
        Ok(socket) => sockets.push(socket),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::AFNOSUPPORT) => {}
        Err(error) => return Err(error),
    }
    Ok(sockets)
}

fn open(
    family: AddressFamily,
    protocol: Protocol,
    filter: &mut [libc::sock_filter],
) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::RAW, flags, Some(protocol))?;
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    set(&socket, libc::SO_ATTACH_FILTER, &program)?;
    // For good, whoever gets hold of it.
    set(&socket, libc::SO_LOCK_FILTER, &1_i32)?;
    set(&socket, libc::SO_RCVBUF, &BUFFER_BYTES)?;
    Ok(socket)
}

fn set<T>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as told, which `value` has; a filter's program outlives the call.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw const *value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    check(done.into()).map(drop)
}

// The filters, in the classic language of socket filters; see linux/filter.h.

const BYTE: u16 = 0x30;
const WORD: u16 = 0x20;
/// A byte, counted from the end of IP's header.
const BYTE_BEHIND_HEADER: u16 = 0x50;
/// Finds that end.
const LENGTH_OF_HEADER: u16 = 0xb1;

/// Passes «unreachable» about packets that were not for 127.0.0.0/8. Such a socket shows IP's header, too.
fn of_ipv4() -> [libc::sock_filter; 7] {
    [
        op(LENGTH_OF_HEADER, 0, 0, 0),
        load(BYTE_BEHIND_HEADER, 0),
        equal(3, 0, 3),
        // Behind the header of ICMP is that of the packet; there is its destination.
        load(BYTE_BEHIND_HEADER, 8 + 16),
        equal(127, 1, 0),
        take(MOST_BYTES),
        take(0),
    ]
}

/// Passes «unreachable» about packets that were not for ::1. Such a socket shows no header of IP.
fn of_ipv6() -> [libc::sock_filter; 12] {
    [
        load(BYTE, 0),
        equal(1, 0, 9),
        load(WORD, 8 + 24),
        equal(0, 0, 6),
        load(WORD, 8 + 28),
        equal(0, 0, 4),
        load(WORD, 8 + 32),
        equal(0, 0, 2),
        load(WORD, 8 + 36),
        equal(1, 1, 0),
        take(MOST_BYTES),
        take(0),
    ]
}

fn load(size: u16, at: u32) -> libc::sock_filter {
    op(size, 0, 0, at)
}

/// So many lines are passed over, if what was loaded is equal and if not.
fn equal(value: u32, then: u8, otherwise: u8) -> libc::sock_filter {
    op(0x15, then, otherwise, value)
}

fn take(bytes: u32) -> libc::sock_filter {
    op(0x06, 0, 0, bytes)
}

fn op(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}
