//! Client of the older HTTP+SSE transport: the server sends an event stream, and messages are posted to the URL in its first event.
//!
//! When the stream ends, the connection ends, and the supervisor of the server opens another one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use reqwest::{Client, Response, Url};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::event_stream::{Event, Events};
use super::redact::error_chain;

/// Time limit for the first event.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for accepting a message. Its answer is an event.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(60);

/// A connection to a server.
pub(super) struct SseTransport {
    client: Client,
    headers: HeaderMap,
    /// URL for messages.
    endpoint: Url,
    incoming: Incoming,
    /// Keeps messages in the order in which they were sent.
    send_lock: Arc<Mutex<()>>,
}

/// Why a message was not sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The request failed.
    #[error("sending a message failed")]
    Lost(#[source] reqwest::Error),
    /// The server did not answer in time.
    #[error("the server did not accept a message within {} seconds", ACCEPT_TIMEOUT.as_secs())]
    Late,
    /// The server answered with an error.
    #[error("the server refused a message with status {0}")]
    Refused(StatusCode),
}

impl SseTransport {
    /// Opens the stream and waits for its first event.
    pub(super) async fn open(
        client: Client,
        url: &Url,
        headers: &HashMap<HeaderName, HeaderValue>,
    ) -> Result<Self, String> {
        let headers: HeaderMap = headers.clone().into_iter().collect();
        let request = client
            .get(url.clone())
            .headers(headers.clone())
            .header(ACCEPT, "text/event-stream");
        let opening = async {
            let sent = request.send().await;
            let response = sent.map_err(|error| error_chain(&error.without_url()))?;
            check(&response)?;
            // Redirects stay within the same origin.
            let base = response.url().clone();
            let mut incoming = Incoming::of(response);
            let endpoint = loop {
                let event = incoming.next().await;
                let event = event
                    .ok_or("the server closed the stream before it sent the URL for messages")?;
                if event.name == "endpoint" {
                    break endpoint(&base, &event.data)?;
                }
            };
            Ok::<_, String>((endpoint, incoming))
        };
        let opened = timeout(ENDPOINT_TIMEOUT, opening).await;
        let (endpoint, incoming) = opened.map_err(|_| {
            format!(
                "the server did not send the URL for messages within {} seconds",
                ENDPOINT_TIMEOUT.as_secs()
            )
        })??;
        Ok(Self {
            client,
            headers,
            endpoint,
            incoming,
            send_lock: Arc::default(),
        })
    }
}

fn check(response: &Response) -> Result<(), String> {
    if !response.status().is_success() {
        return Err(format!(
            "the server answered with status {}",
            response.status()
        ));
    }
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("text/event-stream") {
        return Ok(());
    }
    Err("the answer is not an event stream: if the server uses streamable HTTP, set \"type\": \"http\"".into())
}

/// The URL for messages. It must have the same origin, because the headers contain keys.
fn endpoint(base: &Url, path: &str) -> Result<Url, String> {
    let endpoint = base.join(path.trim());
    endpoint
        .ok()
        .filter(|endpoint| endpoint.origin() == base.origin())
        .ok_or_else(|| "the server names a URL of another server for messages".into())
}

impl Transport<RoleClient> for SseTransport {
    type Error = Failure;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Failure>> + Send + 'static {
        let request = self
            .client
            .post(self.endpoint.clone())
            .headers(self.headers.clone())
            .json(&message);
        let send_lock = self.send_lock.clone();
        async move {
            let _guard = send_lock.lock().await;
            let sent = timeout(ACCEPT_TIMEOUT, request.send());
            let response = sent.await.map_err(|_| Failure::Late)?;
            let status = response
                .map_err(|error| Failure::Lost(error.without_url()))?
                .status();
            if status.is_success() {
                Ok(())
            } else {
                Err(Failure::Refused(status))
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let event = self.incoming.next().await?;
            if !matches!(event.name.as_str(), "" | "message") {
                continue;
            }
            match serde_json::from_str(&event.data) {
                Ok(message) => return Some(message),
                Err(error) => {
                    tracing::debug!(%error, "ignored an invalid message of an MCP server");
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Failure> {
        self.incoming.close();
        Ok(())
    }
}

/// The events of a response. Waiting for one is cancel-safe.
struct Incoming {
    body: Option<BoxStream<'static, reqwest::Result<bytes::Bytes>>>,
    events: Events,
}

impl Incoming {
    fn of(response: Response) -> Self {
        Self {
            body: Some(response.bytes_stream().boxed()),
            events: Events::default(),
        }
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.events.take() {
                return Some(event);
            }
            let chunk = self.body.as_mut()?.next().await;
            let is_parsed = chunk
                .and_then(Result::ok)
                .is_some_and(|chunk| self.events.feed(&chunk).is_ok());
            if !is_parsed {
                self.close();
            }
        }
    }

    fn close(&mut self) {
        self.body = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_to_the_same_server_only() {
        let base = Url::parse("https://a.example/x/sse?key=1").unwrap();
        for (path, expected) in [
            ("/messages?id=1", Some("https://a.example/messages?id=1")),
            ("messages", Some("https://a.example/x/messages")),
            ("https://a.example/m", Some("https://a.example/m")),
            ("https://a.example:444/m", None),
            ("http://a.example/m", None),
            ("//b.example/m", None),
            ("https://b.example/m", None),
            ("file:///etc/passwd", None),
            ("https://", None),
        ] {
            let found = endpoint(&base, path).ok();
            assert_eq!(found.as_ref().map(Url::as_str), expected, "{path}");
        }
    }
}
