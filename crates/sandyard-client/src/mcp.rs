//! Messages of the Model Context Protocol, carried as they are: to the server's own tools, or to those of a sandbox.
//!
//! A tool server forgets conversations: when nobody spoke for long, or when it died or its sandbox was stopped. A client behind
//! standard input cannot know that and never greets it again, so the channel does, with the client's own words.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde_json::Value;
use tokio::sync::watch;

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

/// What a client says once it has been greeted.
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A conversation with an MCP server. Messages pass unchanged in both directions.
#[derive(Debug)]
pub struct McpChannel {
    client: Client,
    url: Url,
    known: Mutex<Known>,
    /// Held by who greets a server again that has forgotten us; all others wait for it.
    renewing: tokio::sync::Mutex<()>,
    /// Changes when that is done.
    renewals: watch::Sender<()>,
}

/// What the server wants to see again in every request, and how it was greeted.
#[derive(Debug, Default)]
struct Known {
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
    greeting: Option<String>,
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
            renewing: tokio::sync::Mutex::default(),
            renewals: watch::Sender::default(),
        }
    }

    /// Sends a message and hands over every message that comes back for it, each on one line.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached, refuses the message, or hangs up in the middle.
    pub async fn send(&self, message: &str, mut take: impl FnMut(&str)) -> Result<()> {
        if is_greeting(message) {
            *self.known() = Known {
                greeting: Some(message.to_owned()),
                ..Known::default()
            };
        }
        let session = self.known().session.clone();
        let response = match self.post(message).await {
            Err(error) if is_forgotten(&error, session.as_ref()) => {
                self.renew(session.as_ref()).await?;
                self.post(message).await
            }
            other => other,
        };
        let response = match response {
            // A refusal in the protocol's own words is an answer.
            Err(ClientError::Api(refusal)) if is_message(&refusal.body) => {
                self.hand_over(&refusal.body, &mut take);
                return Ok(());
            }
            other => other?,
        };
        self.read(response, &mut SseParser::default(), &mut take)
            .await
    }

    /// Hands over what the server says by itself, until it says that it does not, or the conversation is over.
    pub async fn listen(&self, mut take: impl FnMut(&str)) {
        let mut parser = SseParser::default();
        let mut renewals = self.renewals.subscribe();
        loop {
            renewals.mark_unchanged();
            let session = self.known().session.clone();
            let mut request = self.request(Method::GET);
            if let Some(id) = parser.last_id() {
                request = request.header(LAST_EVENT_ID, id);
            }
            let response = match self.accepted(request.send().await).await {
                Ok(response) => Some(response),
                // Listening alone is no reason to wake a sandbox: the next message greets it again.
                Err(error) if is_forgotten(&error, session.as_ref()) => {
                    if renewals.changed().await.is_err() {
                        return;
                    }
                    parser = SseParser::default();
                    continue;
                }
                // It has no such stream.
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

    /// Greets a server again that has forgotten a conversation, unless somebody has done so since. What it answers is not handed
    /// over: to the client it is the same conversation.
    async fn renew(&self, forgotten: Option<&HeaderValue>) -> Result<()> {
        let _turn = self.renewing.lock().await;
        let greeting = {
            let mut known = self.known();
            if known.session.as_ref() != forgotten {
                return Ok(());
            }
            known.session = None;
            known.version = None;
            known.greeting.clone()
        };
        let greeted = async {
            let response = self.post(&greeting.unwrap_or_default()).await?;
            self.read(response, &mut SseParser::default(), &mut |_: &str| {})
                .await?;
            self.post(INITIALIZED).await
        };
        if let Err(error) = greeted.await {
            // The next message is to try it again.
            self.known().session = forgotten.cloned();
            return Err(error);
        }
        self.renewals.send_replace(());
        Ok(())
    }

    /// Sends a message, and keeps the session that the answer may name.
    async fn post(&self, message: &str) -> Result<Response> {
        let request = self
            .request(Method::POST)
            .header(CONTENT_TYPE, "application/json");
        let response = request.body(message.to_owned()).send().await;
        let response = self.accepted(response).await?;
        if let Some(session) = response.headers().get(SESSION) {
            self.known().session = Some(session.clone());
        }
        Ok(response)
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

fn is_greeting(message: &str) -> bool {
    let message: Value = serde_json::from_str(message).unwrap_or_default();
    message["method"] == "initialize"
}

/// Says whether a refusal means that the server does not know the session in which it was asked.
fn is_forgotten(error: &ClientError, session: Option<&HeaderValue>) -> bool {
    session.is_some() && matches!(error, ClientError::Api(refusal) if refusal.status == 404)
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
