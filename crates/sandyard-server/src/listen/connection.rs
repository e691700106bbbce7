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

use super::body_timeout::TimedBody;
use super::listener::Listener;
use super::shutdown::Shutdown;
use super::write_timeout::WriteTimeout;

/// Longest wait for a client that does not read.
const WRITE_TIMEOUT: Duration = Duration::from_secs(300);

/// Bytes that a connection buffers, of the head of a request and of a response.
const MAX_BUFFER: usize = 128 << 10;

/// What all connections of a server share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) router: Router,
    pub(super) tls: Option<Arc<rustls::ServerConfig>>,
    pub(super) shutdown: Shutdown,
    pub(super) header_timeout: Duration,
    pub(super) body_timeout: Duration,
}

/// Serves a connection until the client closes it or the server shuts down.
pub(super) async fn serve(shared: Shared, socket: tokio::net::TcpStream, listener: Listener) {
    // Responses are written at once, so Nagle's algorithm would only delay them.
    let _ = socket.set_nodelay(true);
    // Below TLS, where the bytes that the client reads are visible.
    let socket = WriteTimeout::new(socket, WRITE_TIMEOUT);
    match (listener.is_tls, shared.tls.clone()) {
        (true, Some(config)) => {
            let handshake = TlsAcceptor::from(config).accept(socket);
            match tokio::time::timeout(shared.header_timeout, handshake).await {
                Ok(Ok(stream)) => serve_http(shared, stream, listener).await,
                Ok(Err(error)) => {
                    tracing::debug!(peer = %listener.peer, %error, "TLS handshake failed");
                }
                Err(_) => tracing::debug!(peer = %listener.peer, "TLS handshake took too long"),
            }
        }
        _ => serve_http(shared, socket, listener).await,
    }
}

async fn serve_http<S>(shared: Shared, stream: S, listener: Listener)
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
    let request_shutdown = shutdown.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        // Without a timeout, a client that announces a body and sends none would keep its connection forever.
        let is_expecting = request.headers().contains_key(EXPECT);
        let request =
            request.map(|body| Body::new(TimedBody::new(body, body_timeout, is_expecting)));
        respond(router.clone(), request_shutdown.clone(), listener, request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // Without a timeout, a client that sends its head very slowly would keep its connection forever.
        .header_read_timeout(header_timeout)
        .max_buf_size(MAX_BUFFER)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    tokio::pin!(connection);
    let result = tokio::select! {
        result = &mut connection => result,
        () = shutdown.wait() => {
            // Requests in progress are answered; an idle connection ends now.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(peer = %listener.peer, %error, "Connection ended early");
    }
}

async fn respond(
    router: Router,
    shutdown: Shutdown,
    listener: Listener,
    mut request: Request,
) -> Result<Response, Infallible> {
    request.extensions_mut().insert(listener);
    request.extensions_mut().insert(shutdown);
    router.oneshot(request).await
}
