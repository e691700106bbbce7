//! Raw sockets that report packets which the sandbox's network rejected.
//!
//! The kernel answers such a packet with an ICMP error that holds the head of the packet, and raw sockets get a copy. A
//! packet socket would see the packets themselves, but closing one makes the kernel wait for a grace period (`packet_release`): some
//! ten milliseconds at the end of every sandbox.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, ipproto};

use super::check;

/// Bytes that are passed on: enough for two IP headers, the ICMP header and the ports.
const MAX_BYTES: u32 = 256;
/// Receive buffer in bytes. The kernel doubles it for its own needs. Packets that do not fit are lost, which is acceptable.
const BUFFER_BYTES: i32 = 16 * 1024;

/// Opens the sockets in the current network namespace: one for IPv4, and one for IPv6 if the kernel has it.
pub(crate) fn open_error_sockets() -> io::Result<Vec<OwnedFd>> {
    let mut sockets = vec![open(
        AddressFamily::INET,
        ipproto::ICMP,
        &mut ipv4_filter(),
    )?];
    match open(AddressFamily::INET6, ipproto::ICMPV6, &mut ipv6_filter()) {
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
    // So that nobody who gets hold of the socket can change the filter.
    set(&socket, libc::SO_LOCK_FILTER, &1_i32)?;
    set(&socket, libc::SO_RCVBUF, &BUFFER_BYTES)?;
    Ok(socket)
}

fn set<T>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as `value` has; a filter's program outlives the call.
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

// The filters are classic BPF programs; see linux/filter.h.

const BYTE: u16 = 0x30;
const WORD: u16 = 0x20;
/// Loads a byte, counted from the end of the IP header.
const BYTE_AFTER_HEADER: u16 = 0x50;
/// Loads the length of the IP header.
const HEADER_LENGTH: u16 = 0xb1;

/// Passes ICMP "destination unreachable" about packets that were not for 127.0.0.0/8. A raw IPv4 socket also shows the IP header.
fn ipv4_filter() -> [libc::sock_filter; 7] {
    [
        op(HEADER_LENGTH, 0, 0, 0),
        load(BYTE_AFTER_HEADER, 0),
        equal(3, 0, 3),
        // The header of the rejected packet follows the ICMP header, and holds its destination.
        load(BYTE_AFTER_HEADER, 8 + 16),
        equal(127, 1, 0),
        take(MAX_BYTES),
        take(0),
    ]
}

/// Passes ICMPv6 "destination unreachable" about packets that were not for ::1. A raw IPv6 socket shows no IP header.
fn ipv6_filter() -> [libc::sock_filter; 12] {
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
        take(MAX_BYTES),
        take(0),
    ]
}

fn load(size: u16, at: u32) -> libc::sock_filter {
    op(size, 0, 0, at)
}

/// Skips `jump_true` instructions if the loaded value is equal to `value`, else `jump_false`.
fn equal(value: u32, jump_true: u8, jump_false: u8) -> libc::sock_filter {
    op(0x15, jump_true, jump_false, value)
}

fn take(bytes: u32) -> libc::sock_filter {
    op(0x06, 0, 0, bytes)
}

fn op(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}
