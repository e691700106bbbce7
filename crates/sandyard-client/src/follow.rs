//! Things as they happen, over SSE; after a cut the stream goes on where it was.

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
use crate::request::Patience;
use crate::sse::{SseEvent, SseParser};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// How long to wait before the next try, unless the server says otherwise: twice as long each time, since one that starts on a
/// busy machine takes its time.
const PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// How often in a row a connection may fail without anything new.
const MAX_FAILURES: u32 = 20;

/// A stream of `T`.
pub struct Follow<T> {
    client: Client,
    operation: &'static str,
    url: Url,
    parser: SseParser,
    response: Option<Response>,
    pending: VecDeque<SseEvent>,
    failures: u32,
    is_over: bool,
    item: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Follow<T> {
    /// Opens the stream; a refusal is known at once.
    pub(crate) async fn open(client: &Client, operation: &'static str, url: Url) -> Result<Self> {
        let mut follow = Self {
            client: client.clone(),
            operation,
            url,
            parser: SseParser::default(),
            response: None,
            pending: VecDeque::new(),
            failures: 0,
            is_over: false,
            item: PhantomData,
        };
        follow.response = Some(follow.connect().await?);
        Ok(follow)
    }

    /// The next item; none: the server said that there will be no more.
    ///
    /// # Errors
    ///
    /// When the server ends the stream with a reason, or stays away for too long.
    pub async fn next(&mut self) -> Result<Option<T>> {
        loop {
            while let Some(event) = self.pending.pop_front() {
                if let Some(item) = self.read(&event)? {
                    return Ok(Some(item));
                }
            }
            if self.is_over {
                return Ok(None);
            }
            self.fill().await?;
        }
    }

    fn read(&mut self, event: &SseEvent) -> Result<Option<T>> {
        match serde_json::from_str(&event.data) {
            Ok(item) => Ok(Some(item)),
            // Something that happened may be an error as well; a refusal looks otherwise.
            Err(_) if event.event == "error" => self.refused(&event.data),
            Err(error) => Err(ClientError::Protocol {
                operation: self.operation,
                problem: error.to_string(),
            }),
        }
    }

    fn refused(&mut self, data: &str) -> Result<Option<T>> {
        let refusal = ApiError::in_stream(data.as_bytes());
        self.response = None;
        // A server that stops says so; the next one goes on with the stream.
        if refusal.code == "unavailable" && self.failures < MAX_FAILURES {
            self.failures += 1;
            return Ok(None);
        }
        self.is_over = true;
        Err(ClientError::Api(Box::new(refusal)))
    }

    /// Reads until there is something new, or nothing more to come.
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
            // The server may be restarting. A stream that ends again with nothing new has really ended.
            Ok(None) if self.failures > 0 => {
                self.is_over = true;
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
        // What was cut off in the middle of an event comes again whole.
        self.parser = self.parser.for_next_connection();
        let longer = PAUSE * 2_u32.saturating_pow(self.failures.saturating_sub(1));
        let pause = self.parser.retry().unwrap_or(longer.min(MAX_PAUSE));
        tokio::time::sleep(pause).await;
        match self.connect().await {
            Ok(response) => self.response = Some(response),
            // Nobody there yet, or there but not ready.
            Err(error)
                if (error.is_connection_failure() || error.status() == Some(503))
                    && self.failures < MAX_FAILURES =>
            {
                self.failures += 1;
            }
            // What was followed is gone.
            Err(error) if matches!(error.status(), Some(404 | 409 | 410)) => self.is_over = true,
            Err(error) => {
                self.is_over = true;
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
            .send(self.operation, Patience::Endless, request)
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
