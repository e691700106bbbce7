//! One request to the API and its answer, within bounds of size and time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method};
use reqwest::{Client, Response, Url};
use sandyard_core::Clock;
use sandyard_provider::{ProviderError, ProviderErrorKind, Result, Verb};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::config::E2bConfig;
use super::model::Sandbox;
use super::{convert, error};
use crate::CallTimeouts;

/// Largest answer: a page has 100 sandboxes, and metadata is short.
const MAX_ANSWER: usize = 8 << 20;
/// Most on a page.
const PAGE: &str = "100";
/// Most pages: as many as anybody has, and an end where the other side knows none. Each has its own time.
const MAX_PAGES: usize = 1000;
/// Where the next page is named.
const NEXT: &str = "x-next-token";
/// The key's header.
const KEY: &str = "x-api-key";

/// No body.
pub(super) const NOTHING: Option<&()> = None;

/// The API.
pub(super) struct Api {
    client: Client,
    url: Url,
    key: HeaderValue,
    timeouts: CallTimeouts,
    installation: String,
    /// Seconds until a sandbox is paused: what was asked for, or the most that is allowed there.
    timeout: AtomicU64,
}

/// What was answered.
pub(super) struct Answer {
    verb: Verb,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    /// Reads it.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.body).map_err(|failure| error::odd(self.verb, failure))
    }

    /// What time it was there.
    fn at_ms(&self) -> i64 {
        let date = self.headers.get(http::header::DATE);
        date.and_then(|date| crate::date::parse_http_date_ms(date.to_str().ok()?))
            .unwrap_or_else(|| Clock::System.now_ms())
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

    /// The host it is on, with its port where that is not the usual one.
    pub(super) fn host(&self) -> String {
        crate::cloud_connector::host(&self.url)
    }

    /// Seconds until a sandbox is paused.
    pub(super) fn timeout(&self) -> u64 {
        self.timeout.load(Ordering::Relaxed)
    }

    /// Takes less, if that is what the API complains about; says whether it was.
    pub(super) fn shorten(&self, complaint: &ProviderError) -> bool {
        let Some(most) = error::longest(complaint).map(|most| most.as_secs()) else {
            return false;
        };
        let before = self.timeout.fetch_min(most, Ordering::Relaxed);
        if before > most {
            tracing::warn!(most, "E2B lets sandboxes run for less time than is set");
        }
        before > most
    }

    /// Asks, and returns what is answered if that is no failure. The path goes piece by piece.
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
        request = request.timeout(self.time(verb));
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await;
        let response = response.map_err(|failure| error::unsent(verb, failure))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = collect(verb, response).await?;
        if !status.is_success() {
            return Err(error::refused(verb, status, &headers, &body));
        }
        Ok(Answer {
            verb,
            headers,
            body,
        })
    }

    /// The time of a request: waking is starting there.
    fn time(&self, verb: Verb) -> Duration {
        match verb {
            Verb::Resume => self.timeouts.create,
            _ => self.timeouts.of(verb),
        }
    }

    /// Goes through all pages of a list.
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
            let answer = self.query(verb, Method::GET, path, &query, NOTHING).await?;
            all.extend(answer.read::<Vec<T>>()?);
            let next = answer.headers.get(NEXT).and_then(|next| next.to_str().ok());
            let Some(next) = next.filter(|next| !next.is_empty()) else {
                return Ok((all, answer.at_ms()));
            };
            let next = ("nextToken", next.to_owned());
            if query.get(fixed) == Some(&next) {
                break;
            }
            query.truncate(fixed);
            query.push(next);
        }
        let message = format!("E2B's answer to `{verb}` has no end");
        Err(ProviderError::new(ProviderErrorKind::Failed, message))
    }

    /// The sandboxes with that mark, and what time it was there.
    pub(super) async fn marked(
        &self,
        verb: Verb,
        mark: &str,
        value: &str,
    ) -> Result<(Vec<Sandbox>, i64)> {
        let query = [
            ("metadata", convert::wanted(mark, value)),
            ("state", "running,paused".to_owned()),
        ];
        let (mut all, at_ms) = self
            .pages::<Sandbox>(verb, &["v2", "sandboxes"], &query)
            .await?;
        // Whatever it makes of the filter: nobody else's, and nothing that is no id.
        all.retain(|one| self.is_ours(one) && convert::mark(one, mark) == Some(value));
        Ok((all, at_ms))
    }

    /// Says whether a sandbox is this installation's.
    pub(super) fn is_ours(&self, sandbox: &Sandbox) -> bool {
        let installation = convert::mark(sandbox, convert::INSTALLATION);
        convert::is_id(&sandbox.sandbox_id) && installation == Some(&self.installation)
    }
}

/// Reads an answer's body, up to a bound.
async fn collect(verb: Verb, mut response: Response) -> Result<Bytes> {
    let mut body = BytesMut::new();
    loop {
        let piece = response.chunk().await;
        match piece.map_err(|failure| error::unsent(verb, failure))? {
            Some(piece) if body.len() + piece.len() > MAX_ANSWER => {
                let message = format!("E2B's answer to `{verb}` is over {MAX_ANSWER} bytes");
                return Err(ProviderError::new(ProviderErrorKind::Failed, message));
            }
            Some(piece) => body.extend_from_slice(&piece),
            None => return Ok(body.freeze()),
        }
    }
}
