//! A proxy for programs that use one, where connections cannot be redirected.
//!
//! It reads a program's request and hands the connection over with it; the gateway answers the program. Only invalid requests
//! are answered here.

use std::cell::RefCell;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use sandyard_wire::egress::{FromAgent, Via};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Egress;
use super::listener::{self, Listener, reset};
use super::name_addresses::NameAddresses;
use super::{http_proxy, socks};

/// How long a program may take to send its request.
const HEAD_TIME: Duration = Duration::from_secs(30);

/// How long a refused program may take to read the answer.
const REFUSAL_TIME: Duration = Duration::from_secs(5);

/// Maximum bytes that are read and discarded after a refusal: unread bytes would cut the answer off.
const MAX_DISCARDED_BYTES: u64 = 1024 * 1024;

/// A program's request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProxyRequest {
    /// The host for the gateway: a name, or an address that stands for none.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) via: Via,
    /// Bytes for the host that the program has sent already.
    pub(super) early: Bytes,
}

/// An answer that ends the connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) Vec<u8>);

/// Serves the listener forever.
pub(super) async fn serve(egress: Rc<Egress>, listener: Listener) {
    loop {
        let connection = listener.next().await;
        let Some(slot) = egress.proxied.take(&egress.channels).await else {
            reset(connection);
            continue;
        };
        let egress = egress.clone();
        tokio::task::spawn_local(async move {
            accept(&egress, connection).await;
            drop(slot);
        });
    }
}

async fn accept(egress: &Egress, connection: OwnedFd) {
    let Ok(mut stream) = listener::stream(connection) else {
        return;
    };
    let request = match timeout(HEAD_TIME, read_request(&mut stream, &egress.names)).await {
        Ok(Ok(request)) => request,
        Ok(Err(Some(refusal))) => return refuse(stream, refusal).await,
        // It disconnected, or sent no request in time.
        Ok(Err(None)) | Err(_) => return,
    };
    let Ok(connection) = stream.into_std() else {
        return;
    };
    let (connection, via) = (OwnedFd::from(connection), request.via);
    let message = FromAgent::Open {
        host: request.host,
        port: request.port,
        via,
        early: request.early,
    };
    let sent = egress
        .channels
        .send(&message, Some(connection.as_fd()))
        .await;
    if sent.is_err()
        && let Ok(stream) = listener::stream(connection)
    {
        refuse(stream, no_gateway(via)).await;
    }
}

/// Reads the program's request; the first byte distinguishes the two protocols.
async fn read_request(
    stream: &mut TcpStream,
    names: &RefCell<NameAddresses>,
) -> Result<ProxyRequest, Option<Refusal>> {
    let mut first = [0];
    match stream.peek(&mut first).await {
        Ok(1..) if first[0] == socks::VERSION => socks::read_request(stream, names).await,
        Ok(1..) => http_proxy::read_request(stream, names).await,
        _ => Err(None),
    }
}

fn no_gateway(via: Via) -> Refusal {
    match via {
        Via::Socks => socks::refusal(socks::GENERAL_FAILURE),
        Via::Connect | Via::Http | Via::Redirect => http_proxy::refusal(
            "503 Service Unavailable",
            "the sandbox's gateway is not available: try again in a few seconds",
        ),
    }
}

/// Sends a refusal, and waits a little until the program has read it.
async fn refuse(mut stream: TcpStream, refusal: Refusal) {
    let send = async {
        stream.write_all(&refusal.0).await?;
        stream.shutdown().await?;
        let mut rest = stream.take(MAX_DISCARDED_BYTES);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    let _ = timeout(REFUSAL_TIME, send).await;
}

/// Reads exactly `COUNT` bytes; `None` when the program disconnects before.
pub(super) async fn read<const COUNT: usize>(stream: &mut TcpStream) -> Option<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    stream.read_exact(&mut bytes).await.ok()?;
    Some(bytes)
}
