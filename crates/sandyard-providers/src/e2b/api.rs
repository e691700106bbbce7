//! One request to the API and its answer, within bounds of size and time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use reqwest::{Client, Url};
use sandyard_provider::{ProviderError, ProviderErrorKind, Result, Verb};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::config::E2bConfig;
use super::model::Sandbox;
use super::{convert, error};
use crate::CallTimeouts;
use crate::http_client::{read_body, server_time_ms};

/// Maximum size of an answer in bytes: a page has 100 sandboxes, and metadata is short.
const MAX_ANSWER: usize = 8 << 20;
/// Entries per page.
const PAGE: &str = "100";
/// Maximum number of pages, in case the API never ends a list. Each has its own timeout.
const MAX_PAGES: usize = 1000;
/// Header with the token of the next page.
const NEXT: &str = "x-next-token";
/// Header of the key.
const KEY: &str = "x-api-key";

/// For requests without a body.
pub(super) const NO_BODY: Option<&()> = None;

/// The API.
pub(super) struct Api {
    client: Client,
    url: Url,
    key: HeaderValue,
    timeouts: CallTimeouts,
    installation: String,
    /// Seconds until a sandbox is paused: the setting, or the maximum of the API if that is shorter.
    timeout: AtomicU64,
}

/// A successful answer.
pub(super) struct Answer {
    verb: Verb,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    /// Parses the body.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.body).map_err(|failure| error::unreadable(self.verb, failure))
    }
}

impl Api {
    pub(super) fn new(config: &E2bConfig) -> Result<Self> {
        let url = config.api()?;
        Ok(Self {
            client: config.client(&url)?,
            url,
            key: config.key()?,
            timeouts: config.timeouts,
            installation: config.installation.clone(),
            timeout: AtomicU64::new(config.timeout.as_secs().max(1)),
        })
    }

    /// The host of the API, with its port unless it is the default one.
    pub(super) fn host(&self) -> String {
        crate::cloud_connector::host(&self.url)
    }

    /// Seconds until a sandbox is paused.
    pub(super) fn timeout(&self) -> u64 {
        self.timeout.load(Ordering::Relaxed)
    }

    /// Sends a request with the current timeout of sandboxes, and again with a shorter one if the API refuses it as too long.
    pub(super) async fn with_timeout<T, F>(&self, send: impl Fn(u64) -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        match send(self.timeout()).await {
            Err(error) if self.accept_shorter_timeout(&error) => send(self.timeout()).await,
            other => other,
        }
    }

    /// Uses a shorter timeout if the API refused the current one as too long; returns whether it did.
    fn accept_shorter_timeout(&self, refusal: &ProviderError) -> bool {
        let Some(max_seconds) =
            error::max_timeout(refusal).map(|max_seconds| max_seconds.as_secs())
        else {
            return false;
        };
        let before = self.timeout.fetch_min(max_seconds, Ordering::Relaxed);
        if before > max_seconds {
            tracing::warn!(max_seconds, "E2B allows a shorter timeout than the setting");
        }
        before > max_seconds
    }

    /// Sends a request and returns the answer if it is a success. Each element of `path` is one segment.
    pub(super) async fn ask(
        &self,
        verb: Verb,
        method: Method,
        path: &[&str],
        body: Option<&(impl Serialize + Sync)>,
    ) -> Result<Answer> {
        self.query(verb, method, path, &[], body).await
    }

    /// The same with a query.
    pub(super) async fn query(
        &self,
        verb: Verb,
        method: Method,
        path: &[&str],
        query: &[(&str, String)],
        body: Option<&(impl Serialize + Sync)>,
    ) -> Result<Answer> {
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty();
            segments.extend(path);
        }
        let mut request = self.client.request(method, url).query(query);
        request = request.header(KEY, self.key.clone());
        request = request.timeout(self.timeout_of(verb));
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await;
        let response = response.map_err(|failure| error::unsent(verb, failure))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let unsent = |failure| error::unsent(verb, failure);
        let body = read_body(response, verb.as_str(), MAX_ANSWER, unsent).await?;
        if !status.is_success() {
            return Err(error::refused(verb, status, &headers, &body));
        }
        Ok(Answer {
            verb,
            headers,
            body,
        })
    }

    /// Timeout of a request. Resuming starts a sandbox at E2B.
    fn timeout_of(&self, verb: Verb) -> Duration {
        match verb {
            Verb::Resume => self.timeouts.create,
            _ => self.timeouts.of(verb),
        }
    }

    /// Reads all pages of a list; returns them with the server's time.
    pub(super) async fn pages<T: DeserializeOwned>(
        &self,
        verb: Verb,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<(Vec<T>, i64)> {
        let mut query = query.to_vec();
        query.push(("limit", PAGE.to_owned()));
        let (fixed, mut all) = (query.len(), Vec::new());
        for _ in 0..MAX_PAGES {
            let answer = self.query(verb, Method::GET, path, &query, NO_BODY).await?;
            all.extend(answer.read::<Vec<T>>()?);
            let next = answer.headers.get(NEXT).and_then(|next| next.to_str().ok());
            let Some(next) = next.filter(|next| !next.is_empty()) else {
                return Ok((all, server_time_ms(&answer.headers)));
            };
            let next = ("nextToken", next.to_owned());
            if query.get(fixed) == Some(&next) {
                break;
            }
            query.truncate(fixed);
            query.push(next);
        }
        let message = format!("E2B's answer to `{verb}` has too many pages");
        Err(ProviderError::new(ProviderErrorKind::Failed, message))
    }

    /// The sandboxes with a label, and the server's time.
    pub(super) async fn with_label(
        &self,
        verb: Verb,
        label: &str,
        value: &str,
    ) -> Result<(Vec<Sandbox>, i64)> {
        let query = [
            ("metadata", convert::query_value(label, value)),
            ("state", "running,paused".to_owned()),
        ];
        let (mut all, at_ms) = self
            .pages::<Sandbox>(verb, &["v2", "sandboxes"], &query)
            .await?;
        // The filter is checked again here, together with the owner and the form of the id.
        all.retain(|sandbox| {
            self.is_owned(sandbox) && convert::label(sandbox, label) == Some(value)
        });
        Ok((all, at_ms))
    }

    /// Whether a sandbox belongs to this installation.
    pub(super) fn is_owned(&self, sandbox: &Sandbox) -> bool {
        let installation = convert::label(sandbox, convert::INSTALLATION);
        convert::is_id(&sandbox.sandbox_id) && installation == Some(&self.installation)
    }
}
