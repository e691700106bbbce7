//! The sandbox's network: a loopback link, and nothing else.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rustix::thread::UnshareFlags;

use sandyard_netlink::route::Changes;

use super::{OperationExt, SysResult};

/// A second address of the loopback link. Without it, programs that resolve names for configured address families only
/// (`AI_ADDRCONFIG`) get no IPv4 addresses: glibc does not count 127.0.0.1, but any other address.
const SECOND_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Moves into a new network namespace.
pub(crate) fn enter_new_network() -> SysResult<()> {
    // SAFETY: a network namespace affects only sockets that are made later; no descriptor or memory is affected.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }
        .operation("create", "a network namespace")
}

/// Brings `lo` up in the current network namespace. With `all_addresses`, packets to every address are routed to it.
pub(crate) fn raise_loopback(all_addresses: bool) -> SysResult<()> {
    let mut changes = Changes::default();
    changes.raise_loopback();
    changes.add_loopback_address(SECOND_ADDRESS);
    if all_addresses {
        changes.keep_everything_here(IpAddr::V4(Ipv4Addr::LOCALHOST));
        changes.keep_everything_here(IpAddr::V6(Ipv6Addr::LOCALHOST));
    }
    changes.make().operation("bring up", "lo")
}
