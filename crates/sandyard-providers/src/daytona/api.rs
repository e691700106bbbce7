//! Asking the API: one place where requests get their key and answers their bounds.

use std::fmt;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, DATE, USER_AGENT};
use http::{HeaderValue, Method};
use reqwest::{Client, Request, RequestBuilder, Response, Url};
use sandyard_core::Clock;
use sandyard_provider::{ProviderError, ProviderErrorKind, Result, Retry};
use serde::de::DeserializeOwned;

use super::DaytonaConfig;
use super::error::{odd, refused, unsent};
use crate::cloud_connector::{CloudConnector, RetryAdvice};
use crate::date::parse_http_date_ms;

/// Most bytes of an answer: a page of a hundred sandboxes, each with all of its labels and variables.
const MAX_ANSWER: usize = 16 << 20;
/// Most bytes that are read of an answer that is a failure.
const MAX_REFUSAL: usize = 64 << 10;
/// How often a request is sent at most.
const TRIES: usize = 3;
/// How long to wait before the next time, unless the other side says.
const USUAL_PAUSE: Duration = Duration::from_millis(300);
/// Whoever says to wait longer than this is not asked again.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// What making a sandbox is called.
pub(super) const CREATE: &str = "create";
/// Says who asks.
const SOURCE: (&str, &str) = ("X-Daytona-Source", "sandyard");
const AGENT: &str = concat!("sandyard/", env!("CARGO_PKG_VERSION"));

/// The API, and what is shown to it.
#[derive(Clone)]
pub(super) struct Api {
    client: Client,
    edge: CloudConnector,
    base: Url,
    authorization: HeaderValue,
    /// How long one request may take.
    most: Duration,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api")
            .field("base", &self.base.as_str())
            .finish_non_exhaustive()
    }
}

impl Api {
    pub(super) fn new(config: &DaytonaConfig) -> Result<Self> {
        let invalid = |message| ProviderError::new(ProviderErrorKind::Invalid, message);
        let base = read_url(&config.server_url).ok_or_else(|| {
            let message = format!(
                "`{}` cannot be the address of Daytona's API",
                config.server_url
            );
            invalid(message).hint(Some(
                "set DAYTONA_SERVER_URL to something like https://app.daytona.io/api".to_owned(),
            ))
        })?;
        let edge = CloudConnector::new(config.trusted_ca.as_deref(), &base)?;
        let key = config.api_key.trim();
        let authorization = HeaderValue::try_from(format!("Bearer {key}"));
        let mut authorization =
            authorization
                .ok()
                .filter(|_| !key.is_empty())
                .ok_or_else(|| {
                    invalid(
                        "there is no key for Daytona, or it holds what no header may".to_owned(),
                    )
                    .hint(Some("set DAYTONA_API_KEY".to_owned()))
                })?;
        authorization.set_sensitive(true);
        Ok(Self {
            client: edge.client()?,
            edge,
            base,
            authorization,
            most: config.timeouts.quick,
        })
    }

    /// The host, with its port where that is not the usual one.
    pub(super) fn host(&self) -> String {
        crate::cloud_connector::host(&self.base)
    }

    /// What is said of it where the key is sent in clear.
    pub(super) fn open_way(&self) -> Option<String> {
        crate::cloud_connector::lack_of_tls("Daytona's API", &self.base)
    }

    /// The way to what it tells of.
    pub(super) fn edge(&self) -> &CloudConnector {
        &self.edge
    }

    /// Begins a request to the API; each piece is one of the path, whatever is in it.
    pub(super) fn to(&self, method: Method, path: &[&str]) -> RequestBuilder {
        self.at(&self.base, method, path)
    }

    /// The same at another address of theirs.
    pub(super) fn at(&self, base: &Url, method: Method, path: &[&str]) -> RequestBuilder {
        let mut url = base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty();
            segments.extend(path);
        }
        self.client
            .request(method, url)
            .timeout(self.most)
            .header(AUTHORIZATION, self.authorization.clone())
            .header(SOURCE.0, SOURCE.1)
            .header(USER_AGENT, AGENT)
    }

    /// Sends it, and reads what is answered.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        what: &str,
        request: RequestBuilder,
    ) -> Result<T> {
        let asked = self.ask_at(what, request).await;
        asked.map(|(answer, _)| answer)
    }

    /// The same, with the time it was there.
    pub(super) async fn ask_at<T: DeserializeOwned>(
        &self,
        what: &str,
        request: RequestBuilder,
    ) -> Result<(T, i64)> {
        let (body, at_ms) = self.send(what, request).await?;
        let read = serde_json::from_slice(&body).map_err(|error| odd(what, error))?;
        Ok((read, at_ms))
    }

    /// Sends it; what is answered does not matter unless it is a failure.
    pub(super) async fn tell(&self, what: &str, request: RequestBuilder) -> Result<()> {
        self.send(what, request).await.map(drop)
    }

    /// Sends it, and again where that does no harm: what was refused for being one too many was not done, and looking, replacing
    /// or deleting twice is like once. Creating is not repeated here: whoever asked may have other places to ask.
    async fn send(&self, what: &str, request: RequestBuilder) -> Result<(Bytes, i64)> {
        let mut request = request.build().map_err(|error| odd(what, error))?;
        for _ in 1..TRIES {
            let again = request.try_clone();
            let is_harmless = matches!(
                *request.method(),
                Method::GET | Method::PUT | Method::DELETE
            );
            let error = match self.send_once(what, request).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let may_repeat = match error.kind {
                ProviderErrorKind::NoCapacity => what != CREATE,
                ProviderErrorKind::Unavailable => is_harmless,
                _ => false,
            };
            let pause = error.retry_after.unwrap_or(USUAL_PAUSE);
            let is_worth_it = may_repeat && error.retry == Retry::Later && pause <= LONGEST_PAUSE;
            let Some(again) = again.filter(|_| is_worth_it) else {
                return Err(error);
            };
            tokio::time::sleep(pause).await;
            request = again;
        }
        self.send_once(what, request).await
    }

    async fn send_once(&self, what: &str, request: Request) -> Result<(Bytes, i64)> {
        let sent = self.client.execute(request).await;
        let response = sent.map_err(|error| unsent(what, error))?;
        let status = response.status();
        if status.is_success() {
            let date = response.headers().get(DATE);
            let at_ms = date.and_then(|date| parse_http_date_ms(date.to_str().ok()?));
            let body = collect(what, response, MAX_ANSWER).await?;
            return Ok((body, at_ms.unwrap_or_else(|| Clock::System.now_ms())));
        }
        let advice = RetryAdvice::of(status, response.headers());
        // Whatever it says, the status alone is a failure.
        let body = collect(what, response, MAX_REFUSAL).await;
        Err(refused(what, status, advice, &body.unwrap_or_default()))
    }
}

/// Reads an address of theirs.
pub(super) fn read_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_plain = url.query().is_none() && url.fragment().is_none() && url.has_host();
    (is_plain && matches!(url.scheme(), "http" | "https")).then_some(url)
}

/// Reads an answer's body, up to a bound.
async fn collect(what: &str, mut response: Response, most: usize) -> Result<Bytes> {
    let mut body = BytesMut::new();
    loop {
        match response
            .chunk()
            .await
            .map_err(|error| unsent(what, error))?
        {
            Some(piece) if body.len() + piece.len() > most => {
                return Err(odd(what, format!("it is over {most} bytes")));
            }
            Some(piece) => body.extend_from_slice(&piece),
            None => return Ok(body.freeze()),
        }
    }
}
