//! The way out of the sandbox: what programs want from the network is handed to a gateway outside.
//!
//! ```text
//!  program ──TCP──▶ redirect ─┐                             ┌─▶ channel ─▶ gateway that leads
//!          ──TCP──▶ proxy ────┤ Open, with the connection   │
//!          ──DNS──▶ lookup ───┼ Query ────────▶ channels ───┤
//!          ──else─▶ strays ───┘ Stray                       └─▶ channel ─▶ gateway that would take over
//!                     │
//!                   names: an address of 198.18.0.0/15 for each name that was looked up
//! ```
//!
//! The agent is not in the way of bytes: it accepts a connection, learns where it was meant to go, sends the connection itself
//! to the gateway and forgets it. It decides nothing either; what may be reached is the gateway's to judge.

mod accept;
mod attach;
mod channel;
mod channels;
mod http_proxy;
mod lookup;
mod lookup_tcp;
mod message;
mod names;
mod original;
mod packet;
mod proxy;
mod questions;
mod redirect;
mod room;
mod socks;
mod strays;
mod target;
mod variables;

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::rc::Rc;

use self::accept::Door;
use self::channels::Channels;
use self::names::Names;
use self::questions::Questions;
use self::room::Room;
use crate::config::EgressDoors;
use crate::limits;

pub(crate) use self::attach::attach;
pub(crate) use self::variables::add_proxy_variables;

/// Most redirected connections that wait for a gateway at once.
const MAX_WAITING_CONNECTIONS: usize = 4096;

/// Most connections to the proxy at once whose requests are not handed over yet; each may hold the head of a request.
const MAX_PROXY_CONNECTIONS: usize = 1024;

/// Most look-ups without an answer at once.
const MAX_QUERIES: usize = 1024;

/// Most connections at once that look names up.
const MAX_LOOKUP_CONNECTIONS: usize = 256;

/// What all parts of the way out share.
#[derive(Debug)]
pub(crate) struct Egress {
    channels: Channels,
    names: RefCell<Names>,
    questions: Questions,
    /// Where redirected connections wait.
    connections: Room,
    /// Where connections to the proxy are read.
    proxied: Room,
    /// Where look-ups wait.
    queries: Room,
    /// Where connections with look-ups stay.
    lookups: Room,
}

impl Default for Egress {
    fn default() -> Self {
        // The agent's own doors and the commands need descriptors too, however many connections wait here.
        let share = usize::try_from(limits::open_files() / 4)
            .unwrap_or(usize::MAX)
            .max(1);
        Self {
            channels: Channels::default(),
            names: RefCell::default(),
            questions: Questions::default(),
            connections: Room::new(share.min(MAX_WAITING_CONNECTIONS)),
            proxied: Room::new(share.min(MAX_PROXY_CONNECTIONS)),
            queries: Room::new(MAX_QUERIES),
            lookups: Room::new(share.min(MAX_LOOKUP_CONNECTIONS)),
        }
    }
}

/// Starts to serve the doors.
///
/// # Errors
///
/// When one of them cannot be put on the event loop.
pub(crate) fn start(egress: &Rc<Egress>, doors: EgressDoors) -> io::Result<()> {
    for fd in doors.redirected {
        tokio::task::spawn_local(redirect::serve(egress.clone(), Door::new(fd)?));
    }
    for fd in doors.names {
        let socket = accept::adopt(fd)?;
        tokio::task::spawn_local(lookup::serve(egress.clone(), Rc::new(socket)));
    }
    for fd in doors.names_tcp {
        tokio::task::spawn_local(lookup_tcp::serve(egress.clone(), Door::new(fd)?));
    }
    if let Some(fd) = doors.proxy {
        tokio::task::spawn_local(proxy::serve(egress.clone(), Door::new(fd)?));
    }
    for fd in doors.strays {
        tokio::task::spawn_local(strays::watch(egress.clone(), accept::adopt(fd)?));
    }
    Ok(())
}

/// The address of a socket on this machine, if it is one of IP.
pub(crate) fn local_address(socket: impl AsFd) -> Option<SocketAddr> {
    let address = rustix::net::getsockname(socket).ok()?;
    SocketAddr::try_from(address).ok()
}
