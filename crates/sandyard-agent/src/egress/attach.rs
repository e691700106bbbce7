//! Attaching a gateway: `GET /egress`, followed by frames.

use std::rc::Rc;

use http::StatusCode;
use http::header::{HeaderValue, UPGRADE};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use sandyard_wire::egress::{ToAgent, decode};
use sandyard_wire::routes::EGRESS_UPGRADE;
use tokio::io::AsyncReadExt as _;

use super::Egress;
use super::channel::Channel;
use crate::call::{Call, Response, plain_error, switch_protocols};
use crate::socket::Peer;

/// Minimum read buffer in bytes; most frames are shorter.
const READ_BYTES: usize = 4096;

/// Upgrades the connection of a request to a channel.
pub(crate) fn attach(call: &mut Call) -> Response {
    let protocol = call.headers().get(UPGRADE).cloned();
    let Some(protocol) = protocol.filter(is_egress) else {
        return plain_error(
            StatusCode::UPGRADE_REQUIRED,
            format!("send the header `Upgrade: {EGRESS_UPGRADE}`"),
        );
    };
    if !call.agent.egress.channels.has_capacity() {
        return plain_error(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many gateways are attached to this sandbox",
        );
    }
    let Some(upgrade) = call.parts.extensions.remove::<OnUpgrade>() else {
        return plain_error(StatusCode::BAD_REQUEST, "the connection cannot be upgraded");
    };
    tokio::task::spawn_local(serve(call.agent.egress.clone(), upgrade));
    switch_protocols(protocol)
}

fn is_egress(value: &HeaderValue) -> bool {
    value
        .as_bytes()
        .eq_ignore_ascii_case(EGRESS_UPGRADE.as_bytes())
}

async fn serve(egress: Rc<Egress>, upgrade: OnUpgrade) {
    let Ok(upgraded) = upgrade.await else { return };
    let Ok(parts) = upgraded.downcast::<TokioIo<Peer>>() else {
        return;
    };
    let peer = parts.io.into_inner();
    let channel = egress.channels.add(peer.clone());
    tokio::select! {
        // The first frames may have been read together with the request's head.
        () = read_frames(&egress, &channel, peer, parts.read_buf.into()) => {}
        () = channel.closed() => {}
    }
    egress.channels.remove(&channel);
}

/// Reads frames until the connection ends or sends an invalid frame.
async fn read_frames(egress: &Egress, channel: &Channel, mut peer: Peer, mut received: Vec<u8>) {
    loop {
        loop {
            match decode(&mut received) {
                Ok(Some(ToAgent::Lead)) => egress.channels.set_leader(channel),
                Ok(Some(ToAgent::Answer { id, packet })) => {
                    egress.pending_queries.resolve(id, packet)
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
        if received.is_empty() {
            received.shrink_to(READ_BYTES);
        }
        received.reserve(READ_BYTES);
        if !matches!(peer.read_buf(&mut received).await, Ok(1..)) {
            return;
        }
    }
}
