//! The sockets that receive what a sandbox sends. Commands do not inherit them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use sandyard_agent::EgressListeners;

/// Port of the proxy, for programs that use one.
const PROXY_PORT: u16 = 49_980;
/// Port that receives redirected connections.
pub(super) const REDIRECTED_PORT: u16 = 49_981;
/// Port that receives redirected DNS queries.
pub(super) const NAMES_PORT: u16 = 49_982;
/// Port that DNS queries are sent to.
pub(super) const DNS_PORT: u16 = 53;

/// How many connections may wait for the agent. The kernel's own limit may be lower.
const BACKLOG: i32 = 4096;

const LOOPBACK: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];

/// Listeners for a network with redirects.
pub(super) fn redirected() -> io::Result<EgressListeners> {
    let mut listeners = EgressListeners::default();
    for address in LOOPBACK {
        listeners
            .redirected
            .extend(unless_missing(listen((address, REDIRECTED_PORT).into()))?);
        listeners
            .dns_udp
            .extend(unless_missing(receive((address, NAMES_PORT).into()))?);
    }
    Ok(listeners)
}

/// Listeners for a network without redirects, where programs must use a proxy.
pub(super) fn proxied(name_server: Ipv4Addr) -> io::Result<EgressListeners> {
    Ok(EgressListeners {
        proxy: Some(listen((Ipv4Addr::LOCALHOST, PROXY_PORT).into())?),
        dns_udp: vec![receive((name_server, DNS_PORT).into())?],
        dns_tcp: vec![listen((name_server, DNS_PORT).into())?],
        ..EgressListeners::default()
    })
}

fn listen(address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = bound(address, SocketType::STREAM)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

fn receive(address: SocketAddr) -> io::Result<OwnedFd> {
    Ok(bound(address, SocketType::DGRAM)?)
}

fn bound(address: SocketAddr, kind: SocketType) -> Result<OwnedFd, Errno> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, kind, flags, None)?;
    rustix::net::bind(&socket, &address)?;
    Ok(socket)
}

/// `None` on a host without IPv6.
fn unless_missing(bound: io::Result<OwnedFd>) -> io::Result<Option<OwnedFd>> {
    match bound.as_ref().map_err(Errno::from_io_error) {
        Err(Some(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL)) => Ok(None),
        _ => bound.map(Some),
    }
}
