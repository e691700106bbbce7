//! A gateway comes in: `GET /egress`, and frames from then on.

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

/// Bytes read in one go; most frames are shorter.
const READ_BYTES: usize = 4096;

/// Makes the connection of a request a channel.
pub(crate) fn attach(call: &mut Call) -> Response {
    let protocol = call.headers().get(UPGRADE).cloned();
    let Some(protocol) = protocol.filter(is_egress) else {
        return plain_error(
            StatusCode::UPGRADE_REQUIRED,
            format!("ask for the upgrade '{EGRESS_UPGRADE}'"),
        );
    };
    if !call.agent.egress.channels.has_room() {
        return plain_error(StatusCode::SERVICE_UNAVAILABLE, "too many gateways");
    }
    let Some(upgrade) = call.parts.extensions.remove::<OnUpgrade>() else {
        return plain_error(StatusCode::BAD_REQUEST, "the connection cannot be upgraded");
    };
    tokio::task::spawn_local(converse(call.agent.egress.clone(), upgrade));
    switch_protocols(protocol)
}

fn is_egress(value: &HeaderValue) -> bool {
    value
        .as_bytes()
        .eq_ignore_ascii_case(EGRESS_UPGRADE.as_bytes())
}

async fn converse(egress: Rc<Egress>, upgrade: OnUpgrade) {
    let Ok(upgraded) = upgrade.await else { return };
    let Ok(parts) = upgraded.downcast::<TokioIo<Peer>>() else {
        return;
    };
    let peer = parts.io.into_inner();
    let channel = egress.channels.add(peer.clone());
    tokio::select! {
        // What came along with the request's head was read with it.
        () = listen(&egress, &channel, peer, parts.read_buf.into()) => {}
        () = channel.until_broken() => {}
    }
    egress.channels.part_with(&channel);
}

/// Reads frames until there are none, or something else.
async fn listen(egress: &Egress, channel: &Channel, mut peer: Peer, mut received: Vec<u8>) {
    loop {
        loop {
            match decode(&mut received) {
                Ok(Some(ToAgent::Lead)) => egress.channels.let_lead(channel),
                Ok(Some(ToAgent::Answer { id, packet })) => egress.questions.settle(id, packet),
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
