//! Somebody between us and an HTTP server who spoils what is said: for what networks and services do on a bad day.
//!
//! Requests are handled one by one, on any connection. Connections that become streams get faults of streams.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use crate::faults_proxy::{Answer, Server, spoil_stream};

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
    /// What is asked is done, and the answer comes byte by byte with this between them; a stream piece by piece.
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

/// Says which requests are meant, by method and path: `GET /health`.
type Filter = fn(&str) -> bool;

struct Plan {
    /// Before all else: which, how often, in which way.
    some: Vec<(Filter, usize, Fault)>,
    next: Vec<Fault>,
    always: Fault,
    /// All that was asked so far.
    call: Vec<String>,
}

impl Faults {
    /// Listens in front of an address; no faults are set.
    pub(crate) async fn before(server: SocketAddr) -> Self {
        Self::before_any(Server::Port(server)).await
    }

    /// The same in front of a socket of this host.
    pub(crate) async fn before_socket(path: &Path) -> Self {
        Self::before_any(Server::Socket(PathBuf::from(path))).await
    }

    async fn before_any(server: Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let plan = Arc::new(Mutex::new(Plan {
            some: Vec::new(),
            next: Vec::new(),
            always: Fault::None,
            call: Vec::new(),
        }));
        let plans = Arc::clone(&plan);
        let accept = async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (plans, server) = (Arc::clone(&plans), server.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let call = format!("{} {}", request.method(), request.uri().path());
                    let fault = take(&plans, call);
                    spoil(request, fault, server.clone())
                });
                let connection = http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .with_upgrades();
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
        let mut plan = self.plan.lock();
        plan.some.clear();
        plan.next.clear();
        plan.always = fault;
    }

    /// Injects a fault into the first `times` matching requests.
    pub(crate) fn some(&self, request_filter: Filter, times: usize, fault: Fault) {
        self.plan.lock().some.push((request_filter, times, fault));
    }

    /// How many of those that are meant there were so far.
    pub(crate) fn count(&self, request_filter: Filter) -> usize {
        let plan = self.plan.lock();
        plan.call.iter().filter(|call| request_filter(call)).count()
    }

    /// Spoils the next requests, each in its way.
    pub(crate) fn next(&self, faults: impl IntoIterator<Item = Fault>) {
        self.plan.lock().next.extend(faults);
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn take(plan: &Mutex<Plan>, call: String) -> Fault {
    let mut plan = plan.lock();
    let mut some = plan.some.iter_mut();
    let matching = some.find(|(request_filter, times, _)| *times > 0 && request_filter(&call));
    let matching = matching.map(|(_, times, fault)| {
        *times -= 1;
        fault.clone()
    });
    plan.call.push(call);
    if let Some(fault) = matching {
        return fault;
    }
    match plan.next.is_empty() {
        true => plan.always.clone(),
        false => plan.next.remove(0),
    }
}

/// An error closes the connection.
async fn spoil(
    request: Request<Incoming>,
    fault: Fault,
    server: Server,
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
    let (head, body) = match server.ask(request).await? {
        Answer::Entire(head, body) => (head, body),
        Answer::Stream(head, ends) => {
            tokio::spawn(spoil_stream(ends, fault));
            return Ok(Response::from_parts(head, full(Bytes::new())));
        }
    };
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

fn full(body: Bytes) -> Body {
    let never = |never: Infallible| match never {};
    Full::new(body).map_err(never).boxed_unsync()
}
