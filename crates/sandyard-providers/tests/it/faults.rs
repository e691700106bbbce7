//! Somebody between us and an HTTP server who spoils what is said: for what networks and services do on a bad day.
//!
//! Requests are looked at one by one, whatever connection they come on. There are no upgrades.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

/// How a request goes.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// As it should.
    None,
    /// The connection is closed at once.
    Refuse,
    /// It is answered with this, whatever is asked.
    Answer(StatusCode, HeaderMap, String),
    /// After a while it is answered well with this, whatever is asked.
    Late(Duration, String),
    /// It is never answered.
    Hang,
    /// What is asked is done, and the answer breaks off in the middle.
    Half,
    /// What is asked is done, and nothing of the answer arrives.
    Lose,
    /// What is asked is done, and the answer comes byte by byte with this between them.
    Slow(Duration),
}

impl Fault {
    /// A failure of that status with one more header, if it has a name, in the words that most APIs use.
    pub(crate) fn status(status: u16, more: (&'static str, &'static str), message: &str) -> Self {
        let mut headers = HeaderMap::new();
        if !more.0.is_empty() {
            headers.insert(more.0, HeaderValue::from_static(more.1));
        }
        let body = serde_json::json!({"code": status, "message": message});
        let status = StatusCode::from_u16(status).expect("a status");
        Self::Answer(status, headers, body.to_string())
    }
}

type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// Somebody in between; gone when dropped.
pub(crate) struct Faults {
    pub(crate) address: SocketAddr,
    plan: Arc<Mutex<Plan>>,
    accepting: AbortHandle,
}

struct Plan {
    next: Vec<Fault>,
    always: Fault,
}

impl Faults {
    /// Stands in front of that address; nothing is spoilt yet.
    pub(crate) async fn before(server: SocketAddr) -> Self {
        // Somebody else of this process may have chosen already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let plan = Arc::new(Mutex::new(Plan {
            next: Vec::new(),
            always: Fault::None,
        }));
        let client = reqwest::Client::builder().no_proxy();
        let client = client.pool_max_idle_per_host(0).build().expect("a client");
        let plans = Arc::clone(&plan);
        let accept = async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (plans, client) = (Arc::clone(&plans), client.clone());
                let service = service_fn(move |request| {
                    let fault = take(&plans);
                    spoil(request, fault, server, client.clone())
                });
                let connection =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                // Either side may leave at any time.
                tokio::spawn(async move { connection.await.ok() });
            }
        };
        Self {
            address,
            plan,
            accepting: tokio::spawn(accept).abort_handle(),
        }
    }

    /// Spoils every request in this way from now on.
    pub(crate) fn set(&self, fault: Fault) {
        let mut plan = lock(&self.plan);
        plan.next.clear();
        plan.always = fault;
    }

    /// Spoils the next requests, each in its way.
    pub(crate) fn next(&self, faults: impl IntoIterator<Item = Fault>) {
        lock(&self.plan).next.extend(faults);
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn lock(plan: &Mutex<Plan>) -> MutexGuard<'_, Plan> {
    plan.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take(plan: &Mutex<Plan>) -> Fault {
    let mut plan = lock(plan);
    match plan.next.is_empty() {
        true => plan.always.clone(),
        false => plan.next.remove(0),
    }
}

/// An error closes the connection.
async fn spoil(
    request: Request<Incoming>,
    fault: Fault,
    server: SocketAddr,
    client: reqwest::Client,
) -> Result<Response<Body>, std::io::Error> {
    let broken = || std::io::Error::other("as the test wanted");
    match &fault {
        Fault::Refuse => return Err(broken()),
        Fault::Hang => std::future::pending().await,
        Fault::Late(pause, text) => {
            tokio::time::sleep(*pause).await;
            return Ok(Response::new(full(Bytes::from(text.clone()))));
        }
        Fault::Answer(status, headers, text) => {
            // All of it is read, or its sender would not see the answer.
            let _ = request.into_body().collect().await;
            let mut response = Response::new(full(Bytes::from(text.clone())));
            *response.status_mut() = *status;
            *response.headers_mut() = headers.clone();
            return Ok(response);
        }
        _ => {}
    }
    let (head, body) = ask(request, server, client)
        .await
        .map_err(std::io::Error::other)?;
    let body = match fault {
        Fault::Lose => return Err(broken()),
        Fault::Half => {
            let half = body.slice(..body.len() / 2);
            let frames = [Ok(Frame::data(half)), Err(broken())];
            StreamBody::new(stream::iter(frames)).boxed_unsync()
        }
        Fault::Slow(pause) => {
            let bytes: Vec<u8> = body.to_vec();
            let frames = stream::iter(bytes).then(move |byte| async move {
                tokio::time::sleep(pause).await;
                Ok(Frame::data(Bytes::from(vec![byte])))
            });
            StreamBody::new(frames).boxed_unsync()
        }
        _ => full(body),
    };
    Ok(Response::from_parts(head, body))
}

/// Asks the server itself; the answer keeps its length.
async fn ask(
    request: Request<Incoming>,
    server: SocketAddr,
    client: reqwest::Client,
) -> Result<(http::response::Parts, Bytes), reqwest::Error> {
    let (mut head, body) = request.into_parts();
    head.headers.remove(header::HOST);
    head.headers.remove(header::TRANSFER_ENCODING);
    let body = body.collect().await.map(|body| body.to_bytes());
    let asked = client
        .request(head.method, format!("http://{server}{}", head.uri))
        .headers(head.headers)
        .body(body.unwrap_or_default());
    let response: http::Response<reqwest::Body> = asked.send().await?.into();
    let (mut head, body) = response.into_parts();
    let body = body.collect().await?.to_bytes();
    head.extensions.clear();
    head.headers.remove(header::TRANSFER_ENCODING);
    if head.status != StatusCode::NO_CONTENT {
        head.headers
            .insert(header::CONTENT_LENGTH, body.len().into());
    }
    Ok((head, body))
}

fn full(body: Bytes) -> Body {
    let never = |never: Infallible| match never {};
    Full::new(body).map_err(never).boxed_unsync()
}
