//! One connection: HTTP/1.1 with upgrades, or HTTP/2.
//!
//! TLS negotiates the version; on a plain connection the client's first bytes show it. A response that breaks off resets its HTTP/2
//! stream, or an HTTP/1.1 connection: a client must not take it for a complete one.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::EXPECT;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use super::body_timeout::TimedBody;
use super::http2;
use super::listener::Listener;
use super::requests::Requests;
use super::reset::{ResetOnClose, ResetSwitch};
use super::shutdown::Shutdown;
use super::write_timeout::WriteTimeout;

/// Longest wait for a client that does not read.
const WRITE_TIMEOUT: Duration = Duration::from_secs(300);

/// Bytes that an HTTP/1.1 connection buffers, of the head of a request and of a response.
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
    let (socket, reset) = ResetOnClose::new(socket);
    // Below TLS, where the bytes that the client reads are visible.
    let socket = WriteTimeout::new(socket, WRITE_TIMEOUT);
    match (listener.is_tls, shared.tls.clone()) {
        (true, Some(config)) => {
            let handshake = TlsAcceptor::from(config).accept(socket);
            match tokio::time::timeout(shared.header_timeout, handshake).await {
                Ok(Ok(stream)) => serve_http(shared, stream, listener, &reset).await,
                Ok(Err(error)) => {
                    tracing::debug!(peer = %listener.peer, %error, "TLS handshake failed");
                }
                Err(_) => tracing::debug!(peer = %listener.peer, "TLS handshake took too long"),
            }
        }
        _ => serve_http(shared, socket, listener, &reset).await,
    }
}

async fn serve_http<S>(shared: Shared, stream: S, listener: Listener, reset: &ResetSwitch)
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
    let requests = Requests::default();
    let counter = requests.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        http2::give_host(&mut request);
        // Without a timeout, a client that announces a body and sends none would keep its connection forever.
        let is_expecting = request.headers().contains_key(EXPECT);
        let request =
            request.map(|body| Body::new(TimedBody::new(body, body_timeout, is_expecting)));
        let response = respond(router.clone(), request_shutdown.clone(), listener, request);
        counter.count(response)
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // Without a timeout, a client that sends its head very slowly would keep its connection forever.
        .header_read_timeout(header_timeout)
        .max_buf_size(MAX_BUFFER);
    http2::configure(&mut builder.http2());
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let result = tokio::select! {
        result = &mut connection => result,
        // Requests in progress are answered; an idle connection ends now.
        () = shutdown.wait() => {
            connection.as_mut().graceful_shutdown();
            connection.as_mut().await
        }
        // HTTP/2, and a client that has not shown its version, have no timeout of their own.
        () = requests.idle_for(header_timeout) => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                result = &mut connection => result,
                () = tokio::time::sleep(header_timeout) => return,
            }
        }
    };
    if let Err(error) = result {
        if is_broken_response(error.as_ref()) {
            reset.set();
        }
        tracing::debug!(peer = %listener.peer, %error, "Connection ended early");
    }
}

/// Says whether a connection ended because the body of a response failed.
fn is_broken_response(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    error
        .downcast_ref::<hyper::Error>()
        .is_some_and(hyper::Error::is_user)
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
