//! Accepting connections and speaking HTTP on them.

use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http::header::CONNECTION;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;

use crate::body::RequestBody;
use crate::call::{Call, Origin};
use crate::fs::CHUNK_BYTES;
use crate::route;
use crate::socket::{Peer, Socket};
use crate::state::Agent;

/// Maximum number of connections of each listener; more wait to be accepted. The listeners are counted separately, so that
/// programs inside cannot lock the host out.
const MAX_CONNECTIONS: usize = 512;

/// Time limit for a request's head, including the wait for it on an idle connection. Clients keep idle connections
/// for a minute or two; closing later than they do avoids a race.
const HEAD_TIMEOUT: Duration = Duration::from_secs(300);

/// Maximum size of a request's head and of the buffers in either direction, in bytes.
const MAX_BUFFER_BYTES: usize = 128 * 1024;

/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 128;

/// The pause after a failed accept, which is mostly due to a lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long a connection with an unread body stays half open after the answer.
const LINGER: Duration = Duration::from_secs(30);

/// A socket that listens.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    async fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Frames are small, and clients wait for each of them.
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
            Self::Unix(listener) => Ok(Socket::Unix(listener.accept().await?.0)),
        }
    }
}

/// Serves one listener forever.
pub(crate) async fn serve(agent: Rc<Agent>, listener: Listener, origin: Origin) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok(socket) => {
                let connection = serve_connection(agent.clone(), Peer::new(socket), origin);
                tokio::task::spawn_local(async move {
                    connection.await;
                    drop(slot);
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn serve_connection(agent: Rc<Agent>, peer: Peer, origin: Origin) {
    let io = TokioIo::new(peer.clone());
    let socket = peer.clone();
    let has_unread_body = Rc::new(Cell::new(false));
    let unread = has_unread_body.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (parts, body) = request.into_parts();
        let call = Call {
            agent: agent.clone(),
            parts,
            body: RequestBody::new(body),
            peer: peer.clone(),
            origin,
        };
        let unread = unread.clone();
        async move {
            let reply = route::answer(call).await;
            // An answer has this header only for this reason.
            unread.set(
                reply
                    .headers()
                    .get(CONNECTION)
                    .is_some_and(|it| it == "close"),
            );
            Ok::<_, Infallible>(reply)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .half_close(true)
        .max_buf_size(MAX_BUFFER_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(io, service)
        .with_upgrades();
    // The client sees the error of a broken connection.
    let _ = connection.await;
    if has_unread_body.get() {
        let _ = tokio::time::timeout(LINGER, discard(socket)).await;
    }
}

/// Reads until the client closes. If a socket with unread bytes is closed, the kernel resets the connection, and a client
/// that is still sending may not be able to read the answer then.
async fn discard(mut socket: Peer) {
    let mut buffer = vec![0; CHUNK_BYTES];
    while matches!(socket.read(&mut buffer).await, Ok(1..)) {}
}
