//! The sandbox's own network: a loopback link, and nothing else.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rustix::thread::UnshareFlags;

use sandyard_netlink::route::Changes;

use super::{Doing, SysResult};

/// Another address of the loopback link. Without it programs that ask for names of «configured» families only
/// (`AI_ADDRCONFIG`) find no IPv4 here: for glibc 127.0.0.1 alone does not count, any other address does.
const SECOND_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Moves into a new network namespace.
pub(crate) fn leave_hosts_network() -> SysResult<()> {
    // SAFETY: a network namespace decides over sockets made from now on; no descriptor or memory is affected.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }
        .doing("leave", "the host's network")
}

/// Brings `lo` up in the current network namespace. With `everything`, packets to any address there is come to it.
pub(crate) fn raise_loopback(everything: bool) -> SysResult<()> {
    let mut changes = Changes::default();
    changes.raise_loopback();
    changes.add_loopback_address(SECOND_ADDRESS);
    if everything {
        changes.keep_everything_here(IpAddr::V4(Ipv4Addr::LOCALHOST));
        changes.keep_everything_here(IpAddr::V6(Ipv6Addr::LOCALHOST));
    }
    changes.make().doing("bring up", "lo")
}
