//! One request and its response: checked, changed, forwarded.

use std::fmt;
use std::sync::Arc;

use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use parking_lot::Mutex;
use sandyard_core::network::{Denial, NetworkGrant};

use super::answer::{self, Body, Refusal};
use super::expect;
use super::host::Host;
use super::redact::redact;
use super::request_changes::RequestChanges;
use super::request_target::{is_absolute, set_target};
use super::state::State;
use super::upgrade;
use super::upstream::Upstream;
use super::versions::MAX_HEADERS;
use crate::dial::WholeUrls;

/// Returns the current grant.
pub(super) type GrantSource = Arc<dyn Fn() -> Arc<NetworkGrant> + Send + Sync>;

/// Judges whether a request may be for a name.
pub(crate) type NameJudge = Arc<dyn Fn(&str) -> Result<(), Denial> + Send + Sync>;

/// The conditions of all requests of a connection.
pub(super) struct ConnectionTerms {
    /// The host of the requests.
    pub(super) host: Host,
    /// Whether both sides use TLS.
    pub(super) is_tls: bool,
    /// The grant that changes them.
    pub(super) grant: GrantSource,
    /// Set if a proxy expects whole URLs.
    pub(super) whole_urls: Option<WholeUrls>,
    /// On a connection by address: judges other names of requests. `None`: requests must be for the host itself.
    pub(super) other_names: Option<NameJudge>,
}

/// Forwards the requests of one connection.
pub(super) struct Exchange {
    terms: ConnectionTerms,
    upstream: Upstream,
    state: Arc<State>,
    /// The last grant and its changes.
    cached: Mutex<Option<(Arc<NetworkGrant>, Arc<RequestChanges>)>>,
}

/// The remote side aborted the connection before it answered. The program gets no answer either, so that it may retry as without
/// a gateway; in HTTP/2 with the error code of the remote side.
#[derive(Debug, thiserror::Error)]
#[error("the connection broke before the answer")]
pub(super) struct Broken(#[source] hyper::Error);

impl Exchange {
    pub(super) fn new(terms: ConnectionTerms, upstream: Upstream, state: Arc<State>) -> Self {
        Self {
            terms,
            upstream,
            state,
            cached: Mutex::new(None),
        }
    }

    /// Answers a program's request with the remote side's response, or with a refusal.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Broken> {
        let version = request.version();
        match self.carry(request).await {
            Ok(response) => Ok(response),
            Err(ExchangeError::Broken(error)) => Err(Broken(error)),
            Err(ExchangeError::Refused(Refusal::Answer(status, text))) => {
                Ok(answer::line(version, status, &text))
            }
            Err(ExchangeError::Refused(Refusal::OtherHost(requested))) => {
                let name = self.terms.host.name.clone();
                Ok(self.deny(version, Denial::NameMismatch { name, requested }))
            }
            Err(ExchangeError::Refused(Refusal::Denied(denial))) => Ok(self.deny(version, denial)),
        }
    }

    fn deny(&self, version: Version, denial: Denial) -> Response<Body> {
        let status = StatusCode::MISDIRECTED_REQUEST;
        let response = answer::line(version, status, &denial.to_string());
        self.state.deny(denial);
        response
    }

    async fn carry(&self, request: Request<Incoming>) -> Result<Response<Body>, ExchangeError> {
        let (mut head, body) = request.into_parts();
        self.check(&head)?;
        let changes = self.changes()?;
        let hidden = changes.apply(&mut head.headers)?;
        let is_for_proxy = is_absolute(&head);
        set_target(&self.terms, &mut head)?;
        let mut request = Request::from_parts(head, body);
        let program = upgrade::of_request(&mut request);
        let method = request.method().clone();
        let (request, expectation) = expect::outgoing(request);
        let _waiting = program.is_some().then(|| self.state.upgrading());
        let sent = self.upstream.send(request).await;
        expectation.answered();
        let mut response = sent.map_err(|error| self.broken(error))?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let Some(program) = program else {
                let text = "the remote side changed the protocol without a request for it";
                return Err(Refusal::bad_gateway(text.to_owned()).into());
            };
            let other = hyper::upgrade::on(&mut response);
            self.state.upgraded(program, other);
            return Ok(redact(&method, response, hidden).await);
        }
        // RFC 9112, 6.3: `Transfer-Encoding` counts, and `Content-Length` must not be forwarded.
        if response.headers().contains_key(TRANSFER_ENCODING) {
            response.headers_mut().remove(CONTENT_LENGTH);
        }
        if is_for_proxy {
            // A program that uses the connection as a proxy would send requests for other hosts next.
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        Ok(redact(&method, response, hidden).await)
    }

    fn check(&self, head: &Parts) -> Result<(), Refusal> {
        if head.method == Method::CONNECT {
            let text =
                "CONNECT is not allowed here: it would reach other hosts through an allowed one"
                    .to_owned();
            return Err(Refusal::answer(StatusCode::METHOD_NOT_ALLOWED, text));
        }
        if head.headers.len() > MAX_HEADERS {
            let text = format!("the request has more than {MAX_HEADERS} headers");
            let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            return Err(Refusal::answer(status, text));
        }
        if self.state.is_denied() {
            let text = "this connection is closed, because an earlier request on it was for another host: open a new connection".to_owned();
            return Err(Refusal::answer(StatusCode::MISDIRECTED_REQUEST, text));
        }
        self.terms.host.check(head, self.terms.other_names.as_ref())
    }

    fn changes(&self) -> Result<Arc<RequestChanges>, Refusal> {
        let grant = (self.terms.grant)();
        let mut cached = self.cached.lock();
        match &*cached {
            Some((read, changes)) if Arc::ptr_eq(read, &grant) => Ok(changes.clone()),
            _ => {
                let changes = RequestChanges::of(&grant, &self.terms.host, self.terms.is_tls)?;
                let changes = Arc::new(changes);
                *cached = Some((grant, changes.clone()));
                Ok(changes)
            }
        }
    }

    fn broken(&self, error: hyper::Error) -> ExchangeError {
        let name = &self.terms.host.name;
        if error.is_parse() || error.is_parse_status() {
            let text = format!("`{name}` sent an invalid HTTP response: {error}");
            self.state.fail(text.clone());
            return Refusal::bad_gateway(text).into();
        }
        self.state
            .fail(format!("`{name}` sent no response: {error}"));
        ExchangeError::Broken(error)
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("host", &self.terms.host)
            .finish_non_exhaustive()
    }
}

enum ExchangeError {
    Refused(Refusal),
    Broken(hyper::Error),
}

impl From<Refusal> for ExchangeError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
