//! Addresses by netlink: a dump of `RTM_GETADDR`, see rtnetlink(7).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
const NLM_F_REQUEST_DUMP: u16 = 0x301;
const NLM_F_DUMP_INTR: u16 = 0x10;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;

/// Size of a message header, in bytes.
const HEAD_BYTES: usize = 16;

/// Size of `struct ifaddrmsg`, which the attributes follow.
const ADDRESS_BYTES: usize = 8;

/// The kernel fills at most 32 KiB at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// How often a dump is tried while addresses change.
const ATTEMPTS: u32 = 4;

/// Reads the addresses of all interfaces of this network namespace.
pub(super) fn addresses() -> io::Result<Vec<IpAddr>> {
    for _ in 0..ATTEMPTS {
        if let Some(addresses) = dump()? {
            return Ok(addresses);
        }
    }
    Err(io::Error::other("addresses changed during every dump"))
}

/// One dump; `None` if addresses changed meanwhile.
fn dump() -> io::Result<Option<Vec<IpAddr>>> {
    // No protocol is protocol 0, which is NETLINK_ROUTE.
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
    set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_secs(1)))?;
    rustix::net::send(&socket, &request(), SendFlags::empty())?;
    let mut found = Dump::default();
    let mut buffer = vec![0; BUFFER_BYTES];
    while !found.is_done {
        let (len, _) = rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        found.read(&buffer[..len])?;
    }
    Ok((!found.is_interrupted).then_some(found.addresses))
}

fn request() -> Vec<u8> {
    let bytes = HEAD_BYTES + ADDRESS_BYTES;
    let mut message = Vec::with_capacity(bytes);
    message.extend((bytes as u32).to_ne_bytes());
    message.extend(RTM_GETADDR.to_ne_bytes());
    message.extend(NLM_F_REQUEST_DUMP.to_ne_bytes());
    // Number, sender and all of `struct ifaddrmsg`: zero is every family and every interface.
    message.resize(bytes, 0);
    message
}

#[derive(Debug, Default)]
struct Dump {
    addresses: Vec<IpAddr>,
    is_interrupted: bool,
    is_done: bool,
}

impl Dump {
    /// Reads one batch of messages.
    fn read(&mut self, mut batch: &[u8]) -> io::Result<()> {
        let cut = || io::Error::new(io::ErrorKind::InvalidData, "a netlink message is truncated");
        if batch.is_empty() {
            return Err(cut());
        }
        while !batch.is_empty() {
            let len = u32_at(batch, 0).ok_or_else(cut)? as usize;
            let message = batch.get(..len).ok_or_else(cut)?;
            let body = message.get(HEAD_BYTES..).ok_or_else(cut)?;
            let flags = u16_at(message, 6).ok_or_else(cut)?;
            self.is_interrupted |= flags & NLM_F_DUMP_INTR != 0;
            match u16_at(message, 4).ok_or_else(cut)? {
                NLMSG_DONE => self.is_done = true,
                NLMSG_ERROR => {
                    let code = u32_at(body, 0).ok_or_else(cut)?.cast_signed();
                    return Err(io::Error::from_raw_os_error(-code));
                }
                RTM_NEWADDR => self.addresses.extend(local_address(body)),
                _ => {}
            }
            batch = batch.get(aligned(len)..).unwrap_or_default();
        }
        Ok(())
    }
}

/// The interface's own address: `IFA_LOCAL`. On point-to-point links `IFA_ADDRESS` is the peer's.
fn local_address(body: &[u8]) -> Option<IpAddr> {
    let (mut address, mut local) = (None, None);
    let mut attributes = body.get(ADDRESS_BYTES..)?;
    while let (Some(len), Some(kind)) = (u16_at(attributes, 0), u16_at(attributes, 2)) {
        let value = attributes.get(4..usize::from(len))?;
        match kind {
            IFA_ADDRESS => address = address_of(value),
            IFA_LOCAL => local = address_of(value),
            _ => {}
        }
        attributes = attributes.get(aligned(len.into())..).unwrap_or_default();
    }
    local.or(address)
}

fn address_of(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(v4).into());
    }
    <[u8; 16]>::try_from(bytes)
        .ok()
        .map(|v6| Ipv6Addr::from(v6).into())
}

fn aligned(len: usize) -> usize {
    len.next_multiple_of(4)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(((HEAD_BYTES + body.len()) as u32).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend(body);
        bytes.resize(aligned(bytes.len()), 0);
        bytes
    }

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(aligned(bytes.len()), 0);
        bytes
    }

    #[test]
    fn the_near_end_of_a_link_is_ours() {
        let mut body = vec![0; ADDRESS_BYTES];
        body.extend(attribute(IFA_ADDRESS, &[192, 0, 2, 99]));
        body.extend(attribute(3, b"tun0\0"));
        body.extend(attribute(IFA_LOCAL, &[192, 0, 2, 1]));
        let mut batch = message(RTM_NEWADDR, 0, &body);
        let mut v6 = vec![0; ADDRESS_BYTES];
        v6.extend(attribute(IFA_ADDRESS, &Ipv6Addr::LOCALHOST.octets()));
        batch.extend(message(RTM_NEWADDR, 0, &v6));
        batch.extend(message(NLMSG_DONE, 0, &[0; 4]));
        let mut found = Dump::default();
        found.read(&batch).unwrap();
        let expected: Vec<IpAddr> = vec![[192, 0, 2, 1].into(), Ipv6Addr::LOCALHOST.into()];
        assert_eq!(found.addresses, expected);
        assert!(found.is_done && !found.is_interrupted);
    }

    #[test]
    fn errors_interruptions_and_cut_messages_are_seen() {
        let denied = (-1_i32).to_ne_bytes();
        let mut found = Dump::default();
        let err = found.read(&message(NLMSG_ERROR, 0, &denied)).unwrap_err();
        assert_eq!(err.raw_os_error(), Some(1));

        let mut found = Dump::default();
        found
            .read(&message(NLMSG_DONE, NLM_F_DUMP_INTR, &[0; 4]))
            .unwrap();
        assert!(found.is_interrupted);

        let whole = message(RTM_NEWADDR, 0, &[0; 20]);
        for len in 0..whole.len() {
            let mut found = Dump::default();
            found.read(&whole[..len]).unwrap_err();
        }
    }
}
