//! The link to a port of a sandbox: an address of Daytona's proxy, and its token.

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

use super::error::unreadable;
use super::model::PreviewUrl;
use crate::cloud_connector::{CloudConnector, ProxyAddress};

/// The header of the token.
const TOKEN: &str = "x-daytona-preview-token";
/// Skips the warning page that the proxy shows to browsers.
const NO_WARNING: &str = "x-daytona-skip-preview-warning";
/// How long an agent may take to answer a probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// The link to one port.
pub(super) struct PortLink {
    /// Identifies the link without revealing its token.
    number: u64,
    address: ProxyAddress,
    headers: HeaderMap,
}

impl fmt::Debug for PortLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PortLink")
            .field(self.address.authority())
            .finish()
    }
}

/// Result of probing a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeResult {
    /// An agent answered.
    Agent,
    /// The proxy refused the token.
    Refusal,
    /// The proxy reached no agent.
    NoAgent,
}

impl PortLink {
    pub(super) fn new(preview: &PreviewUrl, edge: &CloudConnector) -> Result<Self> {
        let address = ProxyAddress::parse(&preview.url)
            .ok_or_else(|| unreadable("preview", "its address has a path"))?;
        if !edge.is_safe(&address) {
            return Err(unreadable(
                "preview",
                "its address has no TLS, but the API's has",
            ));
        }
        let mut token =
            HeaderValue::try_from(&preview.token).map_err(|error| unreadable("preview", error))?;
        token.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert(HOST, address.authority().clone());
        headers.insert(TOKEN, token);
        headers.insert(NO_WARNING, HeaderValue::from_static("true"));
        static COUNT: AtomicU64 = AtomicU64::new(0);
        Ok(Self {
            number: COUNT.fetch_add(1, Ordering::Relaxed),
            address,
            headers,
        })
    }

    /// A unique number.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Headers of every request.
    pub(super) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Whether both have the same address and token.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.address == other.address && self.headers == other.headers
    }

    pub(super) async fn dial(&self, edge: &CloudConnector) -> io::Result<BoxedStream> {
        edge.dial(&self.address).await
    }

    /// Checks whether an agent answers.
    pub(super) async fn probe(&self, edge: &CloudConnector) -> io::Result<ProbeResult> {
        let answer = tokio::time::timeout(PROBE_TIMEOUT, self.ask_health(edge)).await;
        let status = answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        Ok(match status {
            StatusCode::NO_CONTENT | StatusCode::OK => ProbeResult::Agent,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ProbeResult::Refusal,
            // The proxy redirects requests without a valid token to its login page.
            status if status.is_redirection() => ProbeResult::Refusal,
            _ => ProbeResult::NoAgent,
        })
    }

    async fn ask_health(&self, edge: &CloudConnector) -> io::Result<StatusCode> {
        let stream = TokioIo::new(self.dial(edge).await?);
        let (mut sender, connection) = http1::handshake(stream).await.map_err(io::Error::other)?;
        // The connection ends with the sender.
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
