//! Connections from the host to a port inside the sandbox: over TCP, or handed to the tool server.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::time::Duration;

use http::StatusCode;
use http::header::{HeaderValue, UPGRADE};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use sandyard_wire::query::Query;
use sandyard_wire::routes::{DIAL_UPGRADE, query};
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional_with_sizes};
use tokio::net::TcpStream;

use crate::activity::Counters;
use crate::call::{Call, Response, plain_error, switch_protocols};
use crate::socket::Socket;

/// How long a connect may take. Loopback answers immediately, unless a full backlog drops the first attempts.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The first pause before a port of a starting program is tried again; each pause is twice as long, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Size of the copy buffer of each direction, in bytes.
const BUFFER_BYTES: usize = 32 * 1024;

/// Connects to a port of the sandbox's loopback and copies bytes in both directions.
pub(crate) async fn dial(call: &mut Call) -> Response {
    let port = Query::of(&call.parts.uri)
        .get(query::PORT)
        .and_then(|text| text.parse::<u16>().ok())
        .filter(|&port| port != 0);
    let Some(port) = port else {
        return plain_error(
            StatusCode::BAD_REQUEST,
            "`port` must be a number between 1 and 65535",
        );
    };
    let protocol = call.headers().get(UPGRADE).cloned();
    let Some(protocol) = protocol.filter(is_dial) else {
        return plain_error(
            StatusCode::UPGRADE_REQUIRED,
            format!("send the header `Upgrade: {DIAL_UPGRADE}`"),
        );
    };
    let stream = match reach(call, port).await {
        Ok(stream) => stream,
        Err(problem) => return plain_error(StatusCode::BAD_GATEWAY, problem),
    };
    let Some(upgrade) = call.parts.extensions.remove::<OnUpgrade>() else {
        return plain_error(StatusCode::BAD_REQUEST, "the connection cannot be upgraded");
    };
    let counters = call.agent.counters.clone();
    match stream {
        Socket::Tcp(stream) => {
            // Interactive protocols need small writes without delay.
            let _ = stream.set_nodelay(true);
            tokio::task::spawn_local(copy(counters, upgrade, stream))
        }
        Socket::Unix(stream) => tokio::task::spawn_local(copy(counters, upgrade, stream)),
    };
    switch_protocols(protocol)
}

fn is_dial(value: &HeaderValue) -> bool {
    let protocols = [DIAL_UPGRADE, "tcp"];
    protocols
        .iter()
        .any(|name| value.as_bytes().eq_ignore_ascii_case(name.as_bytes()))
}

/// Connects to a port. If the template's start program or service is about to listen there, it waits for that. If nobody
/// listens, it starts the tool server or the template's service of that port.
async fn reach(call: &Call, port: u16) -> Result<Socket, String> {
    let agent = &call.agent;
    let closed = || format!("port {port} is not open");
    // Another listener on that port is not used: it could impersonate the tool server. A template may have its own.
    let is_ours = !agent.start.owns_port(port) && !agent.services.owns_port(port);
    if is_ours && agent.tools.has_port(port) {
        return agent.tools.connect(agent).await.map(Socket::Unix);
    }
    let mut pause = FIRST_PAUSE;
    let mut may_start = true;
    loop {
        match connect(port).await {
            Ok(stream) => return Ok(Socket::Tcp(stream)),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(_) => return Err(closed()),
        }
        if may_start && !agent.start.is_starting(port) {
            // Only once: a service that ends again is not restarted by a waiting dial.
            agent.services.start(agent, port)?;
            may_start = false;
        }
        if !agent.start.is_starting(port) && !agent.services.is_starting(port) {
            return Err(closed());
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            () = call.peer.closed() => return Err(closed()),
        }
    }
}

async fn connect(port: u16) -> io::Result<TcpStream> {
    let attempts = async {
        match TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await {
            Ok(stream) => Ok(stream),
            // There may be no IPv6 at all, so the error of the first attempt counts.
            Err(error) => TcpStream::connect((Ipv6Addr::LOCALHOST, port))
                .await
                .map_err(|_| error),
        }
    };
    tokio::time::timeout(CONNECT_TIMEOUT, attempts).await?
}

async fn copy(
    counters: Rc<Counters>,
    upgrade: OnUpgrade,
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
) {
    let _open = counters.open_stream();
    let Ok(upgraded) = upgrade.await else { return };
    let mut outside = TokioIo::new(upgraded);
    let copied =
        copy_bidirectional_with_sizes(&mut outside, &mut stream, BUFFER_BYTES, BUFFER_BYTES).await;
    if let Ok((up, down)) = copied {
        counters.add_bytes(usize::try_from(up + down).unwrap_or(usize::MAX));
    }
}
