//! Egress: the agent hands programs' connections and DNS queries to a gateway outside the sandbox.
//!
//! ```text
//!  program ──TCP──▶ redirect ─┐                             ┌─▶ channel ─▶ leading gateway
//!          ──TCP──▶ proxy ────┤ Open, with the connection   │
//!          ──DNS──▶ lookup ───┼ Query ────────▶ channels ───┤
//!          ──else─▶ blocked_packets ──┘ BlockedPackets      └─▶ channel ─▶ standby gateway
//!                     │
//!                   name_addresses: an address of 198.18.0.0/15 for each name that was looked up
//! ```
//!
//! No bytes pass through the agent: it accepts a connection, finds out its destination, sends the connection itself to the
//! gateway and closes its copy. The agent decides nothing: the gateway judges what a sandbox may reach.

mod attach;
mod blocked_packets;
mod channel;
mod channels;
mod dns_message;
mod http_proxy;
mod listener;
mod lookup;
mod lookup_tcp;
mod name_addresses;
mod original_destination;
mod packet;
mod pending_queries;
mod proxy;
mod redirect;
mod slots;
mod socks;
mod target;
mod variables;

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::rc::Rc;

use self::channels::Channels;
use self::listener::Listener;
use self::name_addresses::NameAddresses;
use self::pending_queries::PendingQueries;
use self::slots::Slots;
use crate::config::EgressListeners;
use crate::limits;

pub(crate) use self::attach::attach;
pub(crate) use self::variables::add_proxy_variables;

/// Maximum number of redirected connections that wait for a gateway.
const MAX_WAITING_CONNECTIONS: usize = 4096;

/// Maximum number of proxy connections whose requests are not handed over yet; each may hold the head of a request.
const MAX_PROXY_CONNECTIONS: usize = 1024;

/// Maximum number of unanswered DNS queries.
const MAX_QUERIES: usize = 1024;

/// Maximum number of TCP connections for DNS queries.
const MAX_LOOKUP_CONNECTIONS: usize = 256;

/// The state that all parts of egress share.
#[derive(Debug)]
pub(crate) struct Egress {
    channels: Channels,
    names: RefCell<NameAddresses>,
    pending_queries: PendingQueries,
    /// Slots of redirected connections that wait.
    connections: Slots,
    /// Slots of proxy connections that are being read.
    proxied: Slots,
    /// Slots of unanswered queries.
    queries: Slots,
    /// Slots of TCP connections for queries.
    lookups: Slots,
}

impl Default for Egress {
    fn default() -> Self {
        // A part of all descriptors: the agent's own connections and the commands need some, too.
        let share = usize::try_from(limits::open_files() / 4)
            .unwrap_or(usize::MAX)
            .max(1);
        Self {
            channels: Channels::default(),
            names: RefCell::default(),
            pending_queries: PendingQueries::default(),
            connections: Slots::new(share.min(MAX_WAITING_CONNECTIONS)),
            proxied: Slots::new(share.min(MAX_PROXY_CONNECTIONS)),
            queries: Slots::new(MAX_QUERIES),
            lookups: Slots::new(share.min(MAX_LOOKUP_CONNECTIONS)),
        }
    }
}

/// Starts to serve the listeners.
///
/// # Errors
///
/// When one of them cannot be registered with the event loop.
pub(crate) fn start(egress: &Rc<Egress>, listeners: EgressListeners) -> io::Result<()> {
    for fd in listeners.redirected {
        tokio::task::spawn_local(redirect::serve(egress.clone(), Listener::new(fd)?));
    }
    for fd in listeners.dns_udp {
        let socket = listener::adopt(fd)?;
        tokio::task::spawn_local(lookup::serve(egress.clone(), Rc::new(socket)));
    }
    for fd in listeners.dns_tcp {
        tokio::task::spawn_local(lookup_tcp::serve(egress.clone(), Listener::new(fd)?));
    }
    if let Some(fd) = listeners.proxy {
        tokio::task::spawn_local(proxy::serve(egress.clone(), Listener::new(fd)?));
    }
    for fd in listeners.blocked_packets {
        tokio::task::spawn_local(blocked_packets::watch(egress.clone(), listener::adopt(fd)?));
    }
    Ok(())
}

/// The local address of a socket, if it is an IP socket.
pub(crate) fn local_address(socket: impl AsFd) -> Option<SocketAddr> {
    let address = rustix::net::getsockname(socket).ok()?;
    SocketAddr::try_from(address).ok()
}
