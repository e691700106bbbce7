//! Requests to the API: adds the key, and bounds answers.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, USER_AGENT};
use http::{HeaderValue, Method};
use reqwest::{Client, Request, RequestBuilder, Url};
use sandyard_provider::{ProviderError, ProviderErrorKind, Result, Retry};
use serde::de::DeserializeOwned;

use super::DaytonaConfig;
use super::error::{refused, unreadable, unsent};
use crate::cloud_connector::{CloudConnector, RetryAdvice};
use crate::http_client::{read_body, server_time_ms};

/// Maximum size of an answer in bytes: a page of a hundred sandboxes with all of their labels and variables.
const MAX_ANSWER: usize = 16 << 20;
/// Maximum size of a failed answer in bytes.
const MAX_REFUSAL: usize = 64 << 10;
/// Maximum number of attempts.
const MAX_ATTEMPTS: usize = 3;
/// Pause before the next attempt, unless the API names one.
const DEFAULT_PAUSE: Duration = Duration::from_millis(300);
/// When the API names a longer pause, the request is not repeated.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Name of the call that creates a sandbox.
pub(super) const CREATE: &str = "create";
/// Names this client to the API.
const SOURCE_HEADER: (&str, &str) = ("X-Daytona-Source", "sandyard");
const USER_AGENT_VALUE: &str = concat!("sandyard/", env!("CARGO_PKG_VERSION"));

/// The API and its credentials.
#[derive(Clone)]
pub(super) struct Api {
    client: Client,
    edge: CloudConnector,
    base: Url,
    authorization: HeaderValue,
    /// Timeout of one request.
    timeout: Duration,
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
                "`{}` is not a valid address of Daytona's API",
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
                        "the Daytona API key is missing or contains invalid characters".to_owned(),
                    )
                    .hint(Some("set DAYTONA_API_KEY".to_owned()))
                })?;
        authorization.set_sensitive(true);
        Ok(Self {
            client: edge.client()?,
            edge,
            base,
            authorization,
            timeout: config.timeouts.quick,
        })
    }

    /// The host, with its port unless it is the default one.
    pub(super) fn host(&self) -> String {
        crate::cloud_connector::host(&self.base)
    }

    /// The limitation to report when the key is sent without TLS.
    pub(super) fn tls_limitation(&self) -> Option<String> {
        crate::cloud_connector::no_tls_limitation("Daytona's API", &self.base)
    }

    /// Connects to addresses that the API names.
    pub(super) fn edge(&self) -> &CloudConnector {
        &self.edge
    }

    /// Starts a request to the API. Each element of `path` is one segment, whatever it contains.
    pub(super) fn to(&self, method: Method, path: &[&str]) -> RequestBuilder {
        self.at(&self.base, method, path)
    }

    /// The same for another address of Daytona.
    pub(super) fn at(&self, base: &Url, method: Method, path: &[&str]) -> RequestBuilder {
        let mut url = base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty();
            segments.extend(path);
        }
        self.client
            .request(method, url)
            .timeout(self.timeout)
            .header(AUTHORIZATION, self.authorization.clone())
            .header(SOURCE_HEADER.0, SOURCE_HEADER.1)
            .header(USER_AGENT, USER_AGENT_VALUE)
    }

    /// Sends a request and reads the answer.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        what: &str,
        request: RequestBuilder,
    ) -> Result<T> {
        let answer = self.ask_with_time(what, request).await;
        answer.map(|(answer, _)| answer)
    }

    /// The same, with the server's time of the answer.
    pub(super) async fn ask_with_time<T: DeserializeOwned>(
        &self,
        what: &str,
        request: RequestBuilder,
    ) -> Result<(T, i64)> {
        let (body, at_ms) = self.send(what, request).await?;
        let read = serde_json::from_slice(&body).map_err(|error| unreadable(what, error))?;
        Ok((read, at_ms))
    }

    /// Sends a request whose answer matters only if it is a failure.
    pub(super) async fn send_only(&self, what: &str, request: RequestBuilder) -> Result<()> {
        self.send(what, request).await.map(drop)
    }

    /// Sends a request, and repeats it when that is safe: a request that was refused by a rate limit had no effect, and reads,
    /// replacements and deletions are idempotent. Creates are not repeated here: the caller may have other providers.
    async fn send(&self, what: &str, request: RequestBuilder) -> Result<(Bytes, i64)> {
        let mut request = request.build().map_err(|error| unreadable(what, error))?;
        for _ in 1..MAX_ATTEMPTS {
            let copy = request.try_clone();
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
            let pause = error.retry_after.unwrap_or(DEFAULT_PAUSE);
            let should_repeat = may_repeat && error.retry == Retry::Later && pause <= MAX_PAUSE;
            let Some(copy) = copy.filter(|_| should_repeat) else {
                return Err(error);
            };
            tokio::time::sleep(pause).await;
            request = copy;
        }
        self.send_once(what, request).await
    }

    async fn send_once(&self, what: &str, request: Request) -> Result<(Bytes, i64)> {
        let sent = self.client.execute(request).await;
        let unsent = |error| unsent(what, error);
        let response = sent.map_err(unsent)?;
        let status = response.status();
        if status.is_success() {
            let at_ms = server_time_ms(response.headers());
            return Ok((read_body(response, what, MAX_ANSWER, unsent).await?, at_ms));
        }
        let advice = RetryAdvice::of(status, response.headers());
        // The status alone is a failure, whatever the body.
        let body = read_body(response, what, MAX_REFUSAL, unsent).await;
        Err(refused(what, status, advice, &body.unwrap_or_default()))
    }
}

/// Parses an address that the API named.
pub(super) fn read_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_plain = url.query().is_none() && url.fragment().is_none() && url.has_host();
    (is_plain && matches!(url.scheme(), "http" | "https")).then_some(url)
}
