//! Connections that programs believe to go anywhere, and that were redirected here.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use bytes::Bytes;
use sandyard_wire::egress::{FromAgent, Via};

use super::Egress;
use super::accept::{Door, reset};
use super::lookup_tcp;
use super::original::original_destination;
use super::target::Host;

/// The port of look-ups, which are answered here whatever server was meant.
const LOOKUP_PORT: u16 = 53;

/// Serves one door for ever.
pub(super) async fn serve(egress: Rc<Egress>, door: Door) {
    loop {
        let connection = door.next().await;
        match original_destination(connection.as_fd()) {
            // Somebody knocked at our own address; there is nothing here to talk to.
            None => reset(connection),
            Some(wanted) if wanted.port() == LOOKUP_PORT => lookup_tcp::take(&egress, connection),
            Some(wanted) => pass_on(&egress, connection, wanted).await,
        }
    }
}

/// Hands a connection to the gateway; returns when the next may be accepted.
async fn pass_on(egress: &Rc<Egress>, connection: OwnedFd, wanted: SocketAddr) {
    let host = Host::Address(wanted.ip()).spoken(&mut egress.names.borrow_mut());
    let Some(host) = host else {
        return reset(connection);
    };
    let Some(place) = egress.connections.enter(&egress.channels).await else {
        return reset(connection);
    };
    let message = FromAgent::Open {
        host,
        port: wanted.port(),
        via: Via::Redirect,
        early: Bytes::new(),
    };
    let egress = egress.clone();
    tokio::task::spawn_local(async move {
        match egress
            .channels
            .send(&message, Some(connection.as_fd()))
            .await
        {
            // The gateway has it now; closing this copy ends nothing.
            Ok(_) => drop(connection),
            Err(_) => reset(connection),
        }
        drop(place);
    });
}
