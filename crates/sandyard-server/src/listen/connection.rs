//! One connection: HTTP/1.1 with upgrades.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::EXPECT;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use super::body::TimedBody;
use super::shutdown::Shutdown;
use super::stall::Stalling;
use crate::listen::Listener;

/// How long a client may take nothing of what is sent to it.
const STALL: Duration = Duration::from_secs(300);

/// Most bytes of a request's head, and of an answer that wait to be taken, in each connection.
const MAX_BUFFER: usize = 128 << 10;

/// What all connections of a server have in common.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) router: Router,
    pub(super) tls: Option<Arc<rustls::ServerConfig>>,
    pub(super) shutdown: Shutdown,
    pub(super) header_timeout: Duration,
    pub(super) body_timeout: Duration,
}

/// Serves a connection until its client or the server ends.
pub(super) async fn serve(shared: Shared, socket: tokio::net::TcpStream, listener: Listener) {
    // Answers are written whole; waiting to fill a packet only costs time.
    let _ = socket.set_nodelay(true);
    // Below TLS, where every byte that is taken shows.
    let socket = Stalling::new(socket, STALL);
    match (listener.is_tls, shared.tls.clone()) {
        (true, Some(config)) => {
            let handshake = TlsAcceptor::from(config).accept(socket);
            match tokio::time::timeout(shared.header_timeout, handshake).await {
                Ok(Ok(stream)) => talk(shared, stream, listener).await,
                Ok(Err(error)) => {
                    tracing::debug!(peer = %listener.peer, %error, "TLS handshake failed");
                }
                Err(_) => tracing::debug!(peer = %listener.peer, "TLS handshake took too long"),
            }
        }
        _ => talk(shared, socket, listener).await,
    }
}

async fn talk<S>(shared: Shared, stream: S, listener: Listener)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Shared {
        router,
        shutdown,
        header_timeout,
        body_timeout,
        ..
    } = shared;
    let word = shutdown.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        // A client that announces a body and sends none would hold a place for ever.
        let is_awaited = request.headers().contains_key(EXPECT);
        let request = request.map(|body| Body::new(TimedBody::new(body, body_timeout, is_awaited)));
        answer(router.clone(), word.clone(), listener, request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // A client that sends its head a byte a minute would hold a place for ever.
        .header_read_timeout(header_timeout)
        .max_buf_size(MAX_BUFFER)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    tokio::pin!(connection);
    let result = tokio::select! {
        result = &mut connection => result,
        () = shutdown.wait() => {
            // What is being answered is answered; what is idle ends now.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(peer = %listener.peer, %error, "Connection ended early");
    }
}

async fn answer(
    router: Router,
    shutdown: Shutdown,
    listener: Listener,
    mut request: Request,
) -> Result<Response, Infallible> {
    request.extensions_mut().insert(listener);
    request.extensions_mut().insert(shutdown);
    router.oneshot(request).await
}
