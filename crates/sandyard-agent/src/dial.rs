//! Carrying bytes between the host and a TCP port inside the sandbox.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use http::StatusCode;
use http::header::{HeaderValue, UPGRADE};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use sandyard_wire::routes::{DIAL_UPGRADE, query};
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::TcpStream;

use crate::call::{Call, Response, plain_error, switch_protocols};
use crate::query::Query;

/// How long a port may take to answer. Loopback answers at once, unless a full backlog drops the first attempts.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes moved in one go, each way.
const BUFFER_BYTES: usize = 32 * 1024;

/// Connects to a port of the sandbox's loopback and hands the connection over.
pub(crate) async fn dial(call: &mut Call) -> Response {
    let port = Query::of(&call.parts.uri)
        .get(query::PORT)
        .and_then(|text| text.parse::<u16>().ok())
        .filter(|&port| port != 0);
    let Some(port) = port else {
        return plain_error(StatusCode::BAD_REQUEST, "port is not a port number");
    };
    let protocol = call.headers().get(UPGRADE).cloned();
    let Some(protocol) = protocol.filter(is_dial) else {
        return plain_error(
            StatusCode::UPGRADE_REQUIRED,
            format!("ask for the upgrade '{DIAL_UPGRADE}'"),
        );
    };
    let Some(inside) = connect(port).await else {
        return plain_error(StatusCode::BAD_GATEWAY, format!("port {port} is not open"));
    };
    let Some(upgrade) = call.parts.extensions.remove::<OnUpgrade>() else {
        return plain_error(StatusCode::BAD_REQUEST, "the connection cannot be upgraded");
    };
    tokio::task::spawn_local(carry(call.agent.counters.clone(), upgrade, inside));
    switch_protocols(protocol)
}

fn is_dial(value: &HeaderValue) -> bool {
    let known = [DIAL_UPGRADE, "tcp"];
    known
        .iter()
        .any(|name| value.as_bytes().eq_ignore_ascii_case(name.as_bytes()))
}

async fn connect(port: u16) -> Option<TcpStream> {
    let attempts = async {
        match TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await {
            Ok(stream) => Ok(stream),
            Err(_) => TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await,
        }
    };
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, attempts).await;
    connected.ok()?.ok()
}

async fn carry(
    counters: std::rc::Rc<crate::activity::Counters>,
    upgrade: OnUpgrade,
    mut inside: TcpStream,
) {
    let _open = counters.open_stream();
    let Ok(upgraded) = upgrade.await else { return };
    // Small writes of interactive protocols must not wait for each other.
    let _ = inside.set_nodelay(true);
    let mut outside = TokioIo::new(upgraded);
    let copied =
        copy_bidirectional_with_sizes(&mut outside, &mut inside, BUFFER_BYTES, BUFFER_BYTES).await;
    if let Ok((up, down)) = copied {
        counters.add_bytes(usize::try_from(up + down).unwrap_or(usize::MAX));
    }
}
