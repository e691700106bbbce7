//! A connection of the program and one to the other side, tied together.

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
use super::versions::{Protocol, Tasks, client_one, client_two, server_one, server_two};
use super::{HttpFailure, upgrade};

/// How long what is under way may go on after a request was for another host.
const DENIED_GRACE: Duration = Duration::from_secs(5);

/// How long the other side may take to hear that it is over.
const CLOSING_GRACE: Duration = Duration::from_secs(1);

/// Carries requests from one side to the other until either ends.
pub(super) async fn carry<I, O>(
    inside: I,
    outside: O,
    protocol: Protocol,
    terms: ConnectionTerms,
) -> Result<(), HttpFailure>
where
    I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    O: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (inside, outside) = (TokioIo::new(inside), TokioIo::new(outside));
    let (tasks, _guard) = Tasks::new();
    let name = terms.host.name.clone();
    let broken =
        |error: hyper::Error| HttpFailure::Failed(format!("`{name}` cannot be spoken to: {error}"));
    let state = Arc::new(State::default());
    // With TLS, a program that stops writing is as good as gone; without, some do so after a request and wait for the answer.
    let can_half_close = !terms.is_tls;
    let carried = match protocol {
        Protocol::One => {
            let (sender, client) = client_one().handshake(outside).await.map_err(broken)?;
            let client = AbortOnDropHandle::new(tokio::spawn(client.with_upgrades()));
            let upstream = Upstream::One(Mutex::new(sender));
            let service = service(Exchange::new(terms, upstream, state.clone()));
            let server = server_one(can_half_close).serve_connection(inside, service);
            drive(server.with_upgrades(), client, &state).await
        }
        Protocol::Two => {
            let client = client_two(tasks.clone()).handshake(outside);
            let (sender, client) = client.await.map_err(broken)?;
            let client = AbortOnDropHandle::new(tokio::spawn(client));
            let service = service(Exchange::new(terms, Upstream::Two(sender), state.clone()));
            let server = server_two(tasks).serve_connection(inside, service);
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
            "`{name}` broke the connection off"
        ))),
        (None, Err(error)) if error.is_parse() => {
            let text = format!("what the program said to `{name}` is no HTTP: {error}");
            Err(HttpFailure::Failed(text))
        }
        // The program's own end, however it came.
        (None, _) => Ok(()),
    }
}

/// Answers the requests of a program to whom nobody can be reached.
pub(super) async fn refuse<I, S, B>(inside: I, protocol: Protocol, service: S)
where
    I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    S: Service<http::Request<Incoming>, Response = http::Response<B>> + Send + 'static,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    S::Future: Send + 'static,
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let inside = TokioIo::new(inside);
    let (tasks, _guard) = Tasks::new();
    let served = match protocol {
        Protocol::One => server_one(false).serve_connection(inside, service).await,
        Protocol::Two => server_two(tasks).serve_connection(inside, service).await,
    };
    if let Err(error) = served {
        tracing::debug!(%error, "A refused program broke off");
    }
}

/// A server's connection that can be asked to end after what is under way.
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
            () = state.news.notified() => {}
            () = at(deadline) => break Ok(()),
        }
        let is_denied = state.is_denied();
        if is_denied && deadline.is_none() {
            deadline = Some(Instant::now() + DENIED_GRACE);
        }
        // The connection to the other side also ends, for us, when it changes its protocol.
        if !is_ending && (is_denied || (is_client_done && !state.is_upgrading())) {
            is_ending = true;
            server.as_mut().end();
        }
    };
    // With its last sender gone, the connection to the other side ends by itself.
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
