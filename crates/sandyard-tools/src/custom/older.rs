//! The older transport as a client: a stream of events comes from the server, and messages are posted to the address that
//! its first event tells.
//!
//! When the stream ends, so does the connection: whoever keeps the server running begins another.

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

use super::events::{Event, Events};
use super::reasons::reason;

/// How long the server may take until it says where messages go.
const GREETING: Duration = Duration::from_secs(30);
/// How long it may take to accept a message. Its answer comes as an event.
const ACCEPTANCE: Duration = Duration::from_secs(60);

/// A connection to a server.
pub(super) struct Older {
    client: Client,
    headers: HeaderMap,
    /// Where messages go.
    endpoint: Url,
    incoming: Incoming,
    /// Messages arrive in the order in which they were sent.
    turn: Arc<Mutex<()>>,
}

/// Why a message did not arrive.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// Nobody took it.
    #[error("the server did not take a message")]
    Lost(#[source] reqwest::Error),
    /// Nobody took it in time.
    #[error("the server did not take a message within {} seconds", ACCEPTANCE.as_secs())]
    Late,
    /// The server does not want it.
    #[error("the server refused a message with {0}")]
    Refused(StatusCode),
}

impl Older {
    /// Opens the stream and waits for its first event.
    pub(super) async fn open(
        client: Client,
        url: &Url,
        headers: &HashMap<HeaderName, HeaderValue>,
    ) -> Result<Self, String> {
        let headers: HeaderMap = headers.clone().into_iter().collect();
        let asked = client
            .get(url.clone())
            .headers(headers.clone())
            .header(ACCEPT, "text/event-stream");
        let greeting = async {
            let sent = asked.send().await;
            let response = sent.map_err(|error| reason(&error.without_url()))?;
            check(&response)?;
            // Redirects have led to the same origin only.
            let base = response.url().clone();
            let mut incoming = Incoming::of(response);
            let endpoint = loop {
                let event = incoming.next().await;
                let event = event.ok_or("it closed the stream before it said where messages go")?;
                if event.name == "endpoint" {
                    break endpoint(&base, &event.data)?;
                }
            };
            Ok::<_, String>((endpoint, incoming))
        };
        let greeted = timeout(GREETING, greeting).await;
        let (endpoint, incoming) = greeted.map_err(|_| {
            format!(
                "it did not say within {} seconds where messages go",
                GREETING.as_secs()
            )
        })??;
        Ok(Self {
            client,
            headers,
            endpoint,
            incoming,
            turn: Arc::default(),
        })
    }
}

fn check(response: &Response) -> Result<(), String> {
    if !response.status().is_success() {
        return Err(format!("it answered {}", response.status()));
    }
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("text/event-stream") {
        return Ok(());
    }
    Err("what it answered is no stream of events: if it speaks streamable HTTP, say so with \"type\": \"http\"".into())
}

/// Where messages go. Their headers hold keys, which are for this server only.
fn endpoint(base: &Url, told: &str) -> Result<Url, String> {
    let endpoint = base.join(told.trim());
    endpoint
        .ok()
        .filter(|endpoint| endpoint.origin() == base.origin())
        .ok_or_else(|| "it wants messages sent to another server, which is not done".into())
}

impl Transport<RoleClient> for Older {
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
        let turn = self.turn.clone();
        async move {
            let _turn = turn.lock().await;
            let sent = timeout(ACCEPTANCE, request.send());
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
                    tracing::debug!(%error, "a tool server sent something that is no message");
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Failure> {
        self.incoming.close();
        Ok(())
    }
}

/// The events of an answer. Whoever stops waiting for one loses nothing.
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
            let piece = self.body.as_mut()?.next().await;
            let is_fed = piece
                .and_then(Result::ok)
                .is_some_and(|piece| self.events.feed(&piece).is_ok());
            if !is_fed {
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
        for (told, expected) in [
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
            let found = endpoint(&base, told).ok();
            assert_eq!(found.as_ref().map(Url::as_str), expected, "{told}");
        }
    }
}
