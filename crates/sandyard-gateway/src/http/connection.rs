//! A program's connection and the one to the remote side.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server;
use hyper::service::{HttpService, Service, service_fn};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::answer::Body;
use super::exchange::{Broken, ConnectionTerms, Exchange};
use super::state::State;
use super::upstream::Upstream;
use super::versions::{Protocol, Tasks, http1_client, http1_server, http2_client, http2_server};
use super::{HttpFailure, upgrade};

/// How long open requests may continue after a request for another host.
const DENIED_GRACE: Duration = Duration::from_secs(5);

/// How long the remote connection may take to close.
const CLOSING_GRACE: Duration = Duration::from_secs(1);

/// Forwards requests until either side ends.
pub(super) async fn carry<I, O>(
    program: I,
    remote: O,
    protocol: Protocol,
    terms: ConnectionTerms,
) -> Result<(), HttpFailure>
where
    I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    O: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (program, remote) = (TokioIo::new(program), TokioIo::new(remote));
    let (tasks, _guard) = Tasks::new();
    let name = terms.host.name.clone();
    let broken = |error: hyper::Error| {
        HttpFailure::Failed(format!("the HTTP connection to `{name}` failed: {error}"))
    };
    let state = Arc::new(State::default());
    // With TLS, a program that closes its sending side is gone; without, some do so after a request and wait for the answer.
    let can_half_close = !terms.is_tls;
    let carried = match protocol {
        Protocol::Http1 => {
            let (sender, client) = http1_client().handshake(remote).await.map_err(broken)?;
            let client = AbortOnDropHandle::new(tokio::spawn(client.with_upgrades()));
            let upstream = Upstream::Http1(Mutex::new(sender));
            let service = service(Exchange::new(terms, upstream, state.clone()));
            let server = http1_server(can_half_close).serve_connection(program, service);
            drive(server.with_upgrades(), client, &state).await
        }
        Protocol::Http2 => {
            let client = http2_client(tasks.clone()).handshake(remote);
            let (sender, client) = client.await.map_err(broken)?;
            let client = AbortOnDropHandle::new(tokio::spawn(client));
            let service = service(Exchange::new(terms, Upstream::Http2(sender), state.clone()));
            let server = http2_server(tasks).serve_connection(program, service);
            drive(server, client, &state).await
        }
    };
    if let Some(denial) = state.take_denial() {
        return Err(HttpFailure::Denied(denial));
    }
    if let Some((program, other)) = state.take_upgraded() {
        upgrade::splice(program, other).await;
        return Ok(());
    }
    match (state.take_failure(), carried) {
        (Some(reason), _) => Err(HttpFailure::Failed(reason)),
        (None, Err(error)) if error.is_user() => Err(HttpFailure::Failed(format!(
            "`{name}` closed the connection before its answer was complete"
        ))),
        (None, Err(error)) if error.is_parse() => {
            let text = format!("the program's request to `{name}` is not valid HTTP: {error}");
            Err(HttpFailure::Failed(text))
        }
        // The program ended the connection.
        (None, _) => Ok(()),
    }
}

/// Refuses the requests of a program when the remote side is not reachable.
pub(super) async fn refuse<I, S, B>(program: I, protocol: Protocol, service: S)
where
    I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    S: Service<http::Request<Incoming>, Response = http::Response<B>> + Send + 'static,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    S::Future: Send + 'static,
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let program = TokioIo::new(program);
    let (tasks, _guard) = Tasks::new();
    let served = match protocol {
        Protocol::Http1 => http1_server(false).serve_connection(program, service).await,
        Protocol::Http2 => http2_server(tasks).serve_connection(program, service).await,
    };
    if let Err(error) = served {
        tracing::debug!(%error, "A refused program closed its connection");
    }
}

/// A server connection that can end gracefully.
trait Ending: Future<Output = hyper::Result<()>> {
    fn end(self: Pin<&mut Self>);
}

impl<I, S> Ending for server::conn::http1::UpgradeableConnection<I, S>
where
    S: HttpService<Incoming, ResBody = Body>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    fn end(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<I, S> Ending for server::conn::http2::Connection<I, S, Tasks>
where
    S: HttpService<Incoming, ResBody = Body>,
    S::Future: Send + 'static,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
{
    fn end(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// Runs both connections. When one ends, so does the other.
async fn drive<S: Ending>(
    server: S,
    mut client: AbortOnDropHandle<hyper::Result<()>>,
    state: &State,
) -> hyper::Result<()> {
    let mut server = Box::pin(server);
    let (mut is_client_done, mut is_ending) = (false, false);
    let mut deadline = None;
    let served = loop {
        tokio::select! {
            served = server.as_mut() => break served,
            _ = &mut client, if !is_client_done => is_client_done = true,
            () = state.changed.notified() => {}
            () = at(deadline) => break Ok(()),
        }
        let is_denied = state.is_denied();
        if is_denied && deadline.is_none() {
            deadline = Some(Instant::now() + DENIED_GRACE);
        }
        // The HTTP connection to the remote side also ends when it changes its protocol.
        if !is_ending && (is_denied || (is_client_done && !state.is_upgrading())) {
            is_ending = true;
            server.as_mut().end();
        }
    };
    // Without a sender the connection to the remote side ends.
    drop(server);
    if !is_client_done {
        let _ = timeout(CLOSING_GRACE, client).await;
    }
    served
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn service(
    exchange: Exchange,
) -> impl Service<
    http::Request<Incoming>,
    Response = http::Response<Body>,
    Error = Broken,
    Future: Send + 'static,
> + Send {
    let exchange = Arc::new(exchange);
    service_fn(move |request| {
        let exchange = exchange.clone();
        async move { exchange.answer(request).await }
    })
}
