//! Carrying bytes between the host and a port inside the sandbox: TCP, or what the tool server is handed.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::time::Duration;

use http::StatusCode;
use http::header::{HeaderValue, UPGRADE};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use sandyard_wire::routes::{DIAL_UPGRADE, query};
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional_with_sizes};
use tokio::net::TcpStream;

use crate::activity::Counters;
use crate::call::{Call, Response, plain_error, switch_protocols};
use crate::query::Query;
use crate::socket::Socket;

/// How long a port may take to answer. Loopback answers at once, unless a full backlog drops the first attempts.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How soon a port that somebody is about to listen on is tried again; twice as long each time, up to the second.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

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
    let inside = match reach(call, port).await {
        Ok(inside) => inside,
        Err(problem) => return plain_error(StatusCode::BAD_GATEWAY, problem),
    };
    let Some(upgrade) = call.parts.extensions.remove::<OnUpgrade>() else {
        return plain_error(StatusCode::BAD_REQUEST, "the connection cannot be upgraded");
    };
    let counters = call.agent.counters.clone();
    match inside {
        Socket::Tcp(stream) => {
            // Small writes of interactive protocols must not wait for each other.
            let _ = stream.set_nodelay(true);
            tokio::task::spawn_local(carry(counters, upgrade, stream))
        }
        Socket::Unix(stream) => tokio::task::spawn_local(carry(counters, upgrade, stream)),
    };
    switch_protocols(protocol)
}

fn is_dial(value: &HeaderValue) -> bool {
    let known = [DIAL_UPGRADE, "tcp"];
    known
        .iter()
        .any(|name| value.as_bytes().eq_ignore_ascii_case(name.as_bytes()))
}

/// Connects to a port; to one that a program of the template's is about to listen on, as soon as it does. Where nobody
/// listens, what belongs there is started: the tool server, or a service of the template's.
async fn reach(call: &Call, port: u16) -> Result<Socket, String> {
    let agent = &call.agent;
    let closed = || format!("port {port} is not open");
    // Whoever else listens there is not asked: a program could pose as the tool server. A template may have its own.
    let is_ours = !agent.start.is_for(port) && !agent.services.is_for(port);
    if is_ours && agent.tools.has_port(port) {
        return agent.tools.connect(agent).await.map(Socket::Unix);
    }
    let mut pause = FIRST_PAUSE;
    let mut may_begin = true;
    loop {
        match connect(port).await {
            Ok(stream) => return Ok(Socket::Tcp(stream)),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(_) => return Err(closed()),
        }
        if may_begin && !agent.start.is_coming_up(port) {
            // Once: one that ends again is not run over and over by somebody who waits.
            agent.services.begin(agent, port)?;
            may_begin = false;
        }
        if !agent.start.is_coming_up(port) && !agent.services.is_coming_up(port) {
            return Err(closed());
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            () = call.peer.gone() => return Err(closed()),
        }
    }
}

async fn connect(port: u16) -> io::Result<TcpStream> {
    let attempts = async {
        match TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await {
            Ok(stream) => Ok(stream),
            // There may be no IPv6 at all, so what the first attempt says counts.
            Err(error) => TcpStream::connect((Ipv6Addr::LOCALHOST, port))
                .await
                .map_err(|_| error),
        }
    };
    tokio::time::timeout(CONNECT_TIMEOUT, attempts).await?
}

async fn carry(
    counters: Rc<Counters>,
    upgrade: OnUpgrade,
    mut inside: impl AsyncRead + AsyncWrite + Unpin,
) {
    let _open = counters.open_stream();
    let Ok(upgraded) = upgrade.await else { return };
    let mut outside = TokioIo::new(upgraded);
    let copied =
        copy_bidirectional_with_sizes(&mut outside, &mut inside, BUFFER_BYTES, BUFFER_BYTES).await;
    if let Ok((up, down)) = copied {
        counters.add_bytes(usize::try_from(up + down).unwrap_or(usize::MAX));
    }
}
