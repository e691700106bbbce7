//! One request and its response: checked, changed, passed on.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
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

/// Gives the grant as it is at that moment.
pub(super) type GrantSource = Arc<dyn Fn() -> Arc<NetworkGrant> + Send + Sync>;

/// Says whether a request may be for a name.
pub(crate) type NameJudge = Arc<dyn Fn(&str) -> Result<(), Denial> + Send + Sync>;

/// What holds for all requests of a connection.
pub(super) struct ConnectionTerms {
    /// Whom they are for.
    pub(super) host: Host,
    /// Whether both sides speak TLS.
    pub(super) is_tls: bool,
    /// By what they are changed.
    pub(super) grant: GrantSource,
    /// Whether a proxy wants whole URLs.
    pub(super) whole_urls: Option<WholeUrls>,
    /// Where the connection was made by address: which other names requests may be for. None: only for the host itself.
    pub(super) other_names: Option<NameJudge>,
}

/// Carries the requests of one connection.
pub(super) struct Exchange {
    terms: ConnectionTerms,
    upstream: Upstream,
    state: Arc<State>,
    /// The grant that was last read, and what it changes.
    known: Mutex<Option<(Arc<NetworkGrant>, Arc<RequestChanges>)>>,
}

/// The other side broke the connection off before it answered. The program gets no answer either, so that it may try again as
/// it would have done; in HTTP/2 with the code that the other side gave.
#[derive(Debug, thiserror::Error)]
#[error("the connection broke before there was an answer")]
pub(super) struct Broken(#[source] hyper::Error);

impl Exchange {
    pub(super) fn new(terms: ConnectionTerms, upstream: Upstream, state: Arc<State>) -> Self {
        Self {
            terms,
            upstream,
            state,
            known: Mutex::new(None),
        }
    }

    /// Answers a request of the program: by the other side's response, or by a refusal.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Broken> {
        let version = request.version();
        match self.carry(request).await {
            Ok(response) => Ok(response),
            Err(Stop::Broken(error)) => Err(Broken(error)),
            Err(Stop::Refused(Refusal::Answer(status, text))) => {
                Ok(answer::line(version, status, &text))
            }
            Err(Stop::Refused(Refusal::OtherHost(said))) => {
                let name = self.terms.host.name.clone();
                Ok(self.deny(version, Denial::NameMismatch { name, said }))
            }
            Err(Stop::Refused(Refusal::Denied(denial))) => Ok(self.deny(version, denial)),
        }
    }

    fn deny(&self, version: Version, denial: Denial) -> Response<Body> {
        let status = StatusCode::MISDIRECTED_REQUEST;
        let response = answer::line(version, status, &denial.to_string());
        self.state.deny(denial);
        response
    }

    async fn carry(&self, request: Request<Incoming>) -> Result<Response<Body>, Stop> {
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
                let text = "the other side changed the protocol, which nobody asked for";
                return Err(Refusal::bad_gateway(text.to_owned()).into());
            };
            let other = hyper::upgrade::on(&mut response);
            self.state.upgraded(program, other);
            return Ok(redact(&method, response, hidden).await);
        }
        // RFC 9112, 6.3: the latter counts, and the former must not be passed on.
        if response.headers().contains_key(TRANSFER_ENCODING) {
            response.headers_mut().remove(CONTENT_LENGTH);
        }
        if is_for_proxy {
            // Whoever takes us for a proxy would send requests for other hosts next.
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        Ok(redact(&method, response, hidden).await)
    }

    fn check(&self, head: &Parts) -> Result<(), Refusal> {
        if head.method == Method::CONNECT {
            let text = "a host that is allowed is no way to others".to_owned();
            return Err(Refusal::answer(StatusCode::METHOD_NOT_ALLOWED, text));
        }
        if head.headers.len() > MAX_HEADERS {
            let text = format!("the request has more than {MAX_HEADERS} headers");
            let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            return Err(Refusal::answer(status, text));
        }
        if self.state.is_denied() {
            let text = "this connection is over, a request on it was for another host".to_owned();
            return Err(Refusal::answer(StatusCode::MISDIRECTED_REQUEST, text));
        }
        self.terms.host.check(head, self.terms.other_names.as_ref())
    }

    fn changes(&self) -> Result<Arc<RequestChanges>, Refusal> {
        let grant = (self.terms.grant)();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((read, changes)) if Arc::ptr_eq(read, &grant) => Ok(changes.clone()),
            _ => {
                let changes = RequestChanges::of(&grant, &self.terms.host, self.terms.is_tls)?;
                let changes = Arc::new(changes);
                *known = Some((grant, changes.clone()));
                Ok(changes)
            }
        }
    }

    fn broken(&self, error: hyper::Error) -> Stop {
        let name = &self.terms.host.name;
        if error.is_parse() || error.is_parse_status() {
            let text = format!("`{name}` gave an answer that cannot be read: {error}");
            self.state.fail(text.clone());
            return Refusal::bad_gateway(text).into();
        }
        self.state.fail(format!("`{name}` gave no answer: {error}"));
        Stop::Broken(error)
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("host", &self.terms.host)
            .finish_non_exhaustive()
    }
}

enum Stop {
    Refused(Refusal),
    Broken(hyper::Error),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
