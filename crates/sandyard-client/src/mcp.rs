//! Forwards messages of the Model Context Protocol to the server's own tools, or to those of a sandbox.
//!
//! A tool server forgets sessions that were idle for long, and all of them when it restarts or its sandbox stops. A
//! client that talks over standard input cannot know that and never initializes again, so the channel repeats the
//! client's `initialize`.

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

const OPERATION: &str = "forwarding a message";
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Longest response, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 << 20;
/// Longest error response that is read, in bytes.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// Delay before a broken stream of notifications is opened again.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);

/// Notification that a client sends after the response to `initialize`.
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Session with an MCP server. Messages pass unchanged in both directions.
#[derive(Debug)]
pub struct McpChannel {
    client: Client,
    url: Url,
    state: Mutex<SessionState>,
    /// Held by the task that renews a forgotten session; others wait for it.
    renewing: tokio::sync::Mutex<()>,
    /// Notifies when a session was renewed.
    renewals: watch::Sender<()>,
}

/// Headers that every request of the session must carry, and its `initialize` message.
#[derive(Debug, Default)]
struct SessionState {
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
    initialize: Option<String>,
}

impl Client {
    /// Opens a session with the server's own tools.
    pub fn mcp(&self) -> McpChannel {
        McpChannel::new(self, self.route(["mcp"]))
    }

    /// Opens a session with a sandbox's tools, on the port of its tool server.
    pub fn sandbox_mcp(&self, id: &str, port: u16) -> McpChannel {
        McpChannel::new(self, self.route(["p", id, &port.to_string(), "mcp"]))
    }
}

impl McpChannel {
    fn new(client: &Client, url: Url) -> Self {
        Self {
            client: client.clone(),
            url,
            state: Mutex::default(),
            renewing: tokio::sync::Mutex::default(),
            renewals: watch::Sender::default(),
        }
    }

    /// Sends a message and passes every message of the response to `take`, each on one line.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached, rejects the message, or disconnects before the end.
    pub async fn send(&self, message: &str, mut on_message: impl FnMut(&str)) -> Result<()> {
        if is_initialize(message) {
            *self.state() = SessionState {
                initialize: Some(message.to_owned()),
                ..SessionState::default()
            };
        }
        let session = self.state().session.clone();
        let response = match self.post(message).await {
            Err(error) if is_session_lost(&error, session.as_ref()) => {
                self.renew(session.as_ref()).await?;
                self.post(message).await
            }
            result => result,
        };
        let response = match response {
            // An error in the format of the protocol is a response.
            Err(ClientError::Api(api_error)) if is_message(&api_error.body) => {
                self.forward(&api_error.body, &mut on_message);
                return Ok(());
            }
            result => result?,
        };
        self.read(response, &mut SseParser::default(), &mut on_message)
            .await
    }

    /// Passes notifications of the server to `take`, until the session ends or the server says that it sends none.
    pub async fn listen(&self, mut on_message: impl FnMut(&str)) {
        let mut parser = SseParser::default();
        let mut renewals = self.renewals.subscribe();
        loop {
            renewals.mark_unchanged();
            let session = self.state().session.clone();
            let mut request = self.request(Method::GET);
            if let Some(id) = parser.last_id() {
                request = request.header(LAST_EVENT_ID, id);
            }
            let response = match self.check_status(request.send().await).await {
                Ok(response) => Some(response),
                // Listening alone must not wake a sandbox: the next message renews the session.
                Err(error) if is_session_lost(&error, session.as_ref()) => {
                    if renewals.changed().await.is_err() {
                        return;
                    }
                    parser = SseParser::default();
                    continue;
                }
                // The server has no stream of notifications.
                Err(ClientError::Api(_)) => return,
                Err(_) => None,
            };
            if let Some(response) = response {
                // A broken stream continues after the last event.
                let _ = self.read(response, &mut parser, &mut on_message).await;
            }
            parser = parser.for_next_connection();
            tokio::time::sleep(parser.retry().unwrap_or(RECONNECT_DELAY)).await;
        }
    }

    /// Ends the session. A server without sessions may reject the request.
    pub async fn close(&self) {
        let has_session = self.state().session.is_some();
        if has_session {
            let _ = self
                .request(Method::DELETE)
                .timeout(RECONNECT_DELAY * 5)
                .send()
                .await;
        }
    }

    /// Renews a session that the server has forgotten, unless another task has done so. The response is not passed on:
    /// for the client it is the same session.
    async fn renew(&self, lost: Option<&HeaderValue>) -> Result<()> {
        let _guard = self.renewing.lock().await;
        let initialize = {
            let mut state = self.state();
            if state.session.as_ref() != lost {
                return Ok(());
            }
            state.session = None;
            state.version = None;
            state.initialize.clone()
        };
        let renewed = async {
            let response = self.post(&initialize.unwrap_or_default()).await?;
            self.read(response, &mut SseParser::default(), &mut |_: &str| {})
                .await?;
            self.post(INITIALIZED).await
        };
        if let Err(error) = renewed.await {
            // The next message tries again.
            self.state().session = lost.cloned();
            return Err(error);
        }
        self.renewals.send_replace(());
        Ok(())
    }

    /// Sends a message and stores the session ID of the response.
    async fn post(&self, message: &str) -> Result<Response> {
        let request = self
            .request(Method::POST)
            .header(CONTENT_TYPE, "application/json");
        let response = request.body(message.to_owned()).send().await;
        let response = self.check_status(response).await?;
        if let Some(session) = response.headers().get(SESSION) {
            self.state().session = Some(session.clone());
        }
        Ok(response)
    }

    fn request(&self, method: Method) -> RequestBuilder {
        let accept = match method {
            Method::GET => "text/event-stream",
            _ => "application/json, text/event-stream",
        };
        let state = self.state();
        let headers: HeaderMap = [(SESSION, &state.session), (VERSION, &state.version)]
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.clone()?)))
            .collect();
        let request = self.client.http().request(method, self.url.clone());
        request.header(ACCEPT, accept).headers(headers)
    }

    async fn check_status(&self, response: reqwest::Result<Response>) -> Result<Response> {
        let response = response.map_err(|error| self.client.failed(OPERATION, error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = self
            .read_body(response, MAX_ERROR_BYTES)
            .await
            .unwrap_or_default();
        Err(ClientError::Api(Box::new(ApiError::from_body(
            status, None, &body,
        ))))
    }

    async fn read(
        &self,
        response: Response,
        parser: &mut SseParser,
        on_message: &mut impl FnMut(&str),
    ) -> Result<()> {
        if response.status() == StatusCode::ACCEPTED {
            return Ok(());
        }
        let kind = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok());
        if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            let body = self.read_body(response, MAX_RESPONSE_BYTES).await?;
            self.forward(&String::from_utf8_lossy(&body), on_message);
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
                self.forward(&event.data, on_message);
            }
        }
        Ok(())
    }

    async fn read_body(&self, mut response: Response, max_bytes: usize) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        while let Some(bytes) = response
            .chunk()
            .await
            .map_err(|error| self.client.failed(OPERATION, error))?
        {
            if body.len() + bytes.len() > max_bytes {
                return Err(protocol(format!(
                    "the response is larger than {max_bytes} bytes"
                )));
            }
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    }

    /// Passes a message on as one line, and stores the protocol version if it contains one.
    fn forward(&self, message: &str, on_message: &mut impl FnMut(&str)) {
        let message = message.trim();
        if message.is_empty() {
            return;
        }
        if self.state().version.is_none()
            && let Ok(response) = serde_json::from_str::<Value>(message)
            && let Some(version) = response["result"]["protocolVersion"].as_str()
        {
            self.state().version = HeaderValue::from_str(version).ok();
        }
        // A newline between tokens of JSON means the same as a space; within strings it is escaped.
        on_message(&message.replace(['\r', '\n'], " "));
    }

    fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_initialize(message: &str) -> bool {
    let message: Value = serde_json::from_str(message).unwrap_or_default();
    message["method"] == "initialize"
}

/// Whether an error means that the server has forgotten the session.
fn is_session_lost(error: &ClientError, session: Option<&HeaderValue>) -> bool {
    session.is_some() && matches!(error, ClientError::Api(api_error) if api_error.status == 404)
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
