//! Server-sent events as a stream of items. After a broken connection the stream continues after the last event.

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use reqwest::header::{ACCEPT, HeaderName, HeaderValue};
use reqwest::{Method, Response, Url};
use serde::de::DeserializeOwned;

use crate::Result;
use crate::client::Client;
use crate::error::{ApiError, ClientError};
use crate::request::TimeLimit;
use crate::sse::{SseEvent, SseParser};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// First delay before reconnecting, unless the server sends one. It doubles each time.
const FIRST_DELAY: Duration = Duration::from_millis(500);
const MAX_DELAY: Duration = Duration::from_secs(5);
/// Maximum number of failed connections in a row without a new event.
const MAX_FAILURES: u32 = 20;

/// Stream of items of type `T`.
pub struct Follow<T> {
    client: Client,
    operation: &'static str,
    url: Url,
    parser: SseParser,
    response: Option<Response>,
    pending: VecDeque<SseEvent>,
    failures: u32,
    has_ended: bool,
    item: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Follow<T> {
    /// Opens the stream. Fails at once if the server rejects it.
    pub(crate) async fn open(client: &Client, operation: &'static str, url: Url) -> Result<Self> {
        let mut follow = Self {
            client: client.clone(),
            operation,
            url,
            parser: SseParser::default(),
            response: None,
            pending: VecDeque::new(),
            failures: 0,
            has_ended: false,
            item: PhantomData,
        };
        follow.response = Some(follow.connect().await?);
        Ok(follow)
    }

    /// Returns the next item, or `None` at the end of the stream.
    ///
    /// # Errors
    ///
    /// If the server ends the stream with an error, or cannot be reached for too long.
    pub async fn next(&mut self) -> Result<Option<T>> {
        loop {
            while let Some(event) = self.pending.pop_front() {
                if let Some(item) = self.parse(&event)? {
                    return Ok(Some(item));
                }
            }
            if self.has_ended {
                return Ok(None);
            }
            self.fill().await?;
        }
    }

    fn parse(&mut self, event: &SseEvent) -> Result<Option<T>> {
        match serde_json::from_str(&event.data) {
            Ok(item) => Ok(Some(item)),
            // An item may have the event name `error` too, but another format.
            Err(_) if event.event == "error" => self.stream_error(&event.data),
            Err(error) => Err(ClientError::Protocol {
                operation: self.operation,
                problem: error.to_string(),
            }),
        }
    }

    fn stream_error(&mut self, data: &str) -> Result<Option<T>> {
        let error = ApiError::in_stream(data.as_bytes());
        self.response = None;
        // A server that stops sends this error; the stream continues on the next server.
        if error.code == "unavailable" && self.failures < MAX_FAILURES {
            self.failures += 1;
            return Ok(None);
        }
        self.has_ended = true;
        Err(ClientError::Api(Box::new(error)))
    }

    /// Reads until there is a new event, or the stream ends.
    async fn fill(&mut self) -> Result<()> {
        let Some(mut response) = self.response.take() else {
            return self.reconnect().await;
        };
        match response.chunk().await {
            Ok(Some(chunk)) => {
                let events = self
                    .parser
                    .push(&chunk)
                    .map_err(|error| ClientError::Protocol {
                        operation: self.operation,
                        problem: error.to_string(),
                    })?;
                if events.iter().any(|event| event.event != "error") {
                    self.failures = 0;
                }
                self.pending.extend(events);
                self.response = Some(response);
                Ok(())
            }
            // The server may be restarting. A stream that ends twice without a new event has really ended.
            Ok(None) if self.failures > 0 => {
                self.has_ended = true;
                Ok(())
            }
            Ok(None) => {
                self.failures += 1;
                Ok(())
            }
            Err(error) => {
                self.failures += 1;
                let error = self.client.failed(self.operation, error);
                if self.failures > MAX_FAILURES {
                    Err(error)
                } else {
                    Ok(())
                }
            }
        }
    }

    async fn reconnect(&mut self) -> Result<()> {
        // The server sends an incomplete event again.
        self.parser = self.parser.for_next_connection();
        let backoff = FIRST_DELAY * 2_u32.saturating_pow(self.failures.saturating_sub(1));
        let delay = self.parser.retry().unwrap_or(backoff.min(MAX_DELAY));
        tokio::time::sleep(delay).await;
        match self.connect().await {
            Ok(response) => self.response = Some(response),
            // The server is not running or not ready yet.
            Err(error)
                if (error.is_connection_failure() || error.status() == Some(503))
                    && self.failures < MAX_FAILURES =>
            {
                self.failures += 1;
            }
            // The sandbox is gone.
            Err(error) if matches!(error.status(), Some(404 | 409 | 410)) => self.has_ended = true,
            Err(error) => {
                self.has_ended = true;
                return Err(error);
            }
        }
        Ok(())
    }

    async fn connect(&self) -> Result<Response> {
        let mut request = self
            .client
            .http()
            .request(Method::GET, self.url.clone())
            .header(ACCEPT, "text/event-stream");
        let id = self.parser.last_id().map(HeaderValue::from_str);
        if let Some(Ok(id)) = id {
            request = request.header(LAST_EVENT_ID, id);
        }
        self.client
            .send(self.operation, TimeLimit::Unlimited, request)
            .await
    }
}

impl<T> fmt::Debug for Follow<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follow")
            .field("url", &self.url.as_str())
            .field("last_id", &self.parser.last_id())
            .finish_non_exhaustive()
    }
}
