//! Messages of the Model Context Protocol, carried as they are: to the server's own tools, or to those of a sandbox.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde_json::Value;

use crate::Result;
use crate::client::Client;
use crate::error::{ApiError, ClientError};
use crate::sse::SseParser;

const OPERATION: &str = "carrying a message";
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Longest answer.
const MAX_ANSWER: usize = 64 << 20;
/// Longest refusal that is read.
const MAX_REFUSAL: usize = 64 << 10;
/// How long a stream of notices that was cut off is left alone.
const PAUSE: Duration = Duration::from_secs(1);

/// A conversation with an MCP server. Messages pass unchanged in both directions.
#[derive(Debug)]
pub struct McpChannel {
    client: Client,
    url: Url,
    known: Mutex<Known>,
}

/// What the server wants to see again in every request.
#[derive(Debug, Default)]
struct Known {
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

impl Client {
    /// A conversation with the server's own tools.
    pub fn mcp(&self) -> McpChannel {
        McpChannel::new(self, self.route(["mcp"]))
    }

    /// A conversation with a sandbox's tools, on the port its tool server has.
    pub fn sandbox_mcp(&self, id: &str, port: u16) -> McpChannel {
        McpChannel::new(self, self.route(["p", id, &port.to_string(), "mcp"]))
    }
}

impl McpChannel {
    fn new(client: &Client, url: Url) -> Self {
        Self {
            client: client.clone(),
            url,
            known: Mutex::default(),
        }
    }

    /// Sends a message and hands over every message that comes back for it, each on one line.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached, refuses the message, or hangs up in the middle.
    pub async fn send(&self, message: &str, mut take: impl FnMut(&str)) -> Result<()> {
        let request = self
            .request(Method::POST)
            .header(CONTENT_TYPE, "application/json");
        let response = request.body(message.to_owned()).send().await;
        let response = match self.accepted(response).await {
            // A refusal in the protocol's own words is an answer.
            Err(ClientError::Api(refusal)) if is_message(&refusal.body) => {
                self.hand_over(&refusal.body, &mut take);
                return Ok(());
            }
            other => other?,
        };
        if let Some(session) = response.headers().get(SESSION) {
            self.known().session = Some(session.clone());
        }
        self.read(response, &mut SseParser::default(), &mut take)
            .await
    }

    /// Hands over what the server says by itself, until it says that it does not, or the conversation is over.
    pub async fn listen(&self, mut take: impl FnMut(&str)) {
        let mut parser = SseParser::default();
        loop {
            let mut request = self.request(Method::GET);
            if let Some(id) = parser.last_id() {
                request = request.header(LAST_EVENT_ID, id);
            }
            let response = match self.accepted(request.send().await).await {
                Ok(response) => Some(response),
                // It has no such stream, or knows nothing of us any more.
                Err(ClientError::Api(_)) => return,
                Err(_) => None,
            };
            if let Some(response) = response {
                // What is cut off goes on after the last event.
                let _ = self.read(response, &mut parser, &mut take).await;
            }
            parser = parser.for_next_connection();
            tokio::time::sleep(parser.retry().unwrap_or(PAUSE)).await;
        }
    }

    /// Ends the conversation. A server that has nothing to forget may refuse.
    pub async fn close(&self) {
        let has_session = self.known().session.is_some();
        if has_session {
            let _ = self.request(Method::DELETE).timeout(PAUSE * 5).send().await;
        }
    }

    fn request(&self, method: Method) -> RequestBuilder {
        let accept = match method {
            Method::GET => "text/event-stream",
            _ => "application/json, text/event-stream",
        };
        let known = self.known();
        let headers: HeaderMap = [(SESSION, &known.session), (VERSION, &known.version)]
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.clone()?)))
            .collect();
        let request = self.client.http().request(method, self.url.clone());
        request.header(ACCEPT, accept).headers(headers)
    }

    async fn accepted(&self, response: reqwest::Result<Response>) -> Result<Response> {
        let response = response.map_err(|error| self.client.failed(OPERATION, error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = self.whole(response, MAX_REFUSAL).await.unwrap_or_default();
        Err(ClientError::Api(Box::new(ApiError::from_body(
            status, None, &body,
        ))))
    }

    async fn read(
        &self,
        response: Response,
        parser: &mut SseParser,
        take: &mut impl FnMut(&str),
    ) -> Result<()> {
        if response.status() == StatusCode::ACCEPTED {
            return Ok(());
        }
        let kind = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok());
        if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            let body = self.whole(response, MAX_ANSWER).await?;
            self.hand_over(&String::from_utf8_lossy(&body), take);
            return Ok(());
        }
        let mut response = response;
        while let Some(bytes) = response
            .chunk()
            .await
            .map_err(|error| self.client.failed(OPERATION, error))?
        {
            let events = parser
                .push(&bytes)
                .map_err(|error| protocol(error.to_string()))?;
            for event in events {
                self.hand_over(&event.data, take);
            }
        }
        Ok(())
    }

    async fn whole(&self, mut response: Response, most: usize) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        while let Some(bytes) = response
            .chunk()
            .await
            .map_err(|error| self.client.failed(OPERATION, error))?
        {
            if body.len() + bytes.len() > most {
                return Err(protocol(format!("an answer has more than {most} bytes")));
            }
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    }

    /// Hands a message over on one line, and learns from it which version was agreed on.
    fn hand_over(&self, message: &str, take: &mut impl FnMut(&str)) {
        let message = message.trim();
        if message.is_empty() {
            return;
        }
        if self.known().version.is_none()
            && let Ok(answer) = serde_json::from_str::<Value>(message)
            && let Some(version) = answer["result"]["protocolVersion"].as_str()
        {
            self.known().version = HeaderValue::from_str(version).ok();
        }
        // Between the words of JSON a line's end is a space; inside them there is none.
        take(&message.replace(['\r', '\n'], " "));
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_message(body: &str) -> bool {
    let message: Value = serde_json::from_str(body).unwrap_or_default();
    message.get("jsonrpc").is_some() && message.get("error").is_some()
}

fn protocol(problem: String) -> ClientError {
    ClientError::Protocol {
        operation: OPERATION,
        problem,
    }
}
