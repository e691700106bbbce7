//! The way to a port of a sandbox: Daytona's proxy, and what is shown to it.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use sandyard_agent_client::BoxedStream;
use sandyard_agent_client::wire::routes;
use sandyard_provider::Result;

use super::error::odd;
use super::model::PreviewUrl;
use crate::cloud_connector::{CloudConnector, ProxyAddress};

/// What the proxy goes by.
const TOKEN: &str = "x-daytona-preview-token";
/// Keeps the proxy from asking a browser's user first.
const NO_WARNING: &str = "x-daytona-skip-preview-warning";
/// How long an agent may take to say that it is there.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// The way to one port.
pub(super) struct PortLink {
    /// Tells it from others without telling its token.
    number: u64,
    door: ProxyAddress,
    headers: HeaderMap,
}

impl fmt::Debug for PortLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PortLink")
            .field(self.door.authority())
            .finish()
    }
}

/// What is found at the end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// An agent.
    Agent,
    /// A proxy that does not take the token (any more).
    Refusal,
    /// Nobody behind the proxy.
    Nobody,
}

impl PortLink {
    pub(super) fn new(preview: &PreviewUrl, edge: &CloudConnector) -> Result<Self> {
        let door = ProxyAddress::parse(&preview.url)
            .ok_or_else(|| odd("preview", "its address has a path"))?;
        if !edge.is_safe(&door) {
            return Err(odd(
                "preview",
                "its address has no TLS, while the API's has",
            ));
        }
        let mut token =
            HeaderValue::try_from(&preview.token).map_err(|error| odd("preview", error))?;
        token.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert(HOST, door.authority().clone());
        headers.insert(TOKEN, token);
        headers.insert(NO_WARNING, HeaderValue::from_static("true"));
        static COUNT: AtomicU64 = AtomicU64::new(0);
        Ok(Self {
            number: COUNT.fetch_add(1, Ordering::Relaxed),
            door,
            headers,
        })
    }

    /// What no other link has.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// What every request on it carries.
    pub(super) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Says whether both lead to the same place with the same token.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.door == other.door && self.headers == other.headers
    }

    pub(super) async fn dial(&self, edge: &CloudConnector) -> io::Result<BoxedStream> {
        edge.dial(&self.door).await
    }

    /// Looks whether an agent answers.
    pub(super) async fn probe(&self, edge: &CloudConnector) -> io::Result<Found> {
        let asked = tokio::time::timeout(PROBE_TIMEOUT, self.ask_health(edge)).await;
        let status = asked.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        Ok(match status {
            StatusCode::NO_CONTENT | StatusCode::OK => Found::Agent,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Found::Refusal,
            // Whoever shows no token it takes is sent to log in.
            status if status.is_redirection() => Found::Refusal,
            _ => Found::Nobody,
        })
    }

    async fn ask_health(&self, edge: &CloudConnector) -> io::Result<StatusCode> {
        let stream = TokioIo::new(self.dial(edge).await?);
        let (mut sender, connection) = http1::handshake(stream).await.map_err(io::Error::other)?;
        // It ends with the sender.
        tokio::spawn(connection);
        let mut request = Request::get(routes::HEALTH)
            .body(Empty::<Bytes>::new())
            .map_err(io::Error::other)?;
        *request.headers_mut() = self.headers.clone();
        let answer = sender.send_request(request).await;
        answer
            .map(|answer| answer.status())
            .map_err(io::Error::other)
    }
}
