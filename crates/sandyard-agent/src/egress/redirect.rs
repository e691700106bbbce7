//! Connections that the kernel redirected to the agent.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use bytes::Bytes;
use sandyard_wire::egress::{FromAgent, Via};

use super::Egress;
use super::listener::{Listener, reset};
use super::lookup_tcp;
use super::original_destination::original_destination;
use super::target::Host;

/// The DNS port. The agent answers queries to any server.
const LOOKUP_PORT: u16 = 53;

/// Serves one listener forever.
pub(super) async fn serve(egress: Rc<Egress>, listener: Listener) {
    loop {
        let connection = listener.next().await;
        match original_destination(connection.as_fd()) {
            // A direct connection to the agent's own address, which serves nothing.
            None => reset(connection),
            Some(destination) if destination.port() == LOOKUP_PORT => {
                lookup_tcp::accept(&egress, connection)
            }
            Some(destination) => hand_over(&egress, connection, destination).await,
        }
    }
}

/// Hands a connection to the gateway; returns when the next may be accepted.
async fn hand_over(egress: &Rc<Egress>, connection: OwnedFd, destination: SocketAddr) {
    let host = Host::Address(destination.ip()).for_gateway(&mut egress.names.borrow_mut());
    let Some(host) = host else {
        return reset(connection);
    };
    let Some(slot) = egress.connections.take(&egress.channels).await else {
        return reset(connection);
    };
    let message = FromAgent::Open {
        host,
        port: destination.port(),
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
            // The gateway has it now; closing this copy does not end the connection.
            Ok(_) => drop(connection),
            Err(_) => reset(connection),
        }
        drop(slot);
    });
}
