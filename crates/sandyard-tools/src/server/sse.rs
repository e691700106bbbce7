//! MCP over the older HTTP+SSE transport: an event stream from `/sse`, requests posted to `/messages`.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Query, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::{Stream, StreamExt, stream};
use parking_lot::Mutex;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::serve_server_with_ct;
use sandyard_core::random;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard, PollSender};

use super::mcp::Handler;

/// Maximum number of streams.
const MAX_SESSIONS: usize = 100;
/// Maximum number of queued messages of a session, in each direction.
const QUEUE_LENGTH: usize = 64;
/// How long a message may wait for space in the queue.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval of comments that keep proxies from closing the stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Header with the path prefix that the server puts before our paths.
const FORWARDED_PREFIX: &str = "x-forwarded-prefix";
/// Maximum length of the prefix.
const MAX_PREFIX: usize = 256;

/// The routes.
pub(super) fn router(handler: Handler) -> Router {
    let sessions = Sessions {
        handler,
        open: Arc::default(),
    };
    Router::new()
        .route("/sse", get(open))
        .route("/sse/", get(open))
        .route("/messages", post(message))
        .route("/messages/", post(message))
        .with_state(sessions)
}

#[derive(Clone)]
struct Sessions {
    handler: Handler,
    open: Arc<Mutex<HashMap<String, mpsc::Sender<ClientJsonRpcMessage>>>>,
}

impl Sessions {
    /// Adds a session and returns the receiver of its messages; none when there are too many sessions.
    fn add(&self, id: &str) -> Option<mpsc::Receiver<ClientJsonRpcMessage>> {
        let mut open = self.open.lock();
        if open.len() >= MAX_SESSIONS {
            return None;
        }
        let (sender, receiver) = mpsc::channel(QUEUE_LENGTH);
        open.insert(id.to_owned(), sender);
        Some(receiver)
    }

    fn find(&self, id: &str) -> Option<mpsc::Sender<ClientJsonRpcMessage>> {
        let open = self.open.lock();
        open.get(id).cloned()
    }

    fn remove(&self, id: &str) {
        let mut open = self.open.lock();
        open.remove(id);
    }
}

async fn open(
    State(mut sessions): State<Sessions>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    sessions.handler = sessions.handler.with_query(query.as_deref());
    // The ID is a secret: it gives access to the session.
    let Ok(id) = random::text::<16>() else {
        return refuse(
            StatusCode::INTERNAL_SERVER_ERROR,
            "no random bytes for a session ID",
        );
    };
    let Some(incoming) = sessions.add(&id) else {
        let problem = format!("the maximum of {MAX_SESSIONS} streams is reached: close one first");
        return refuse(StatusCode::SERVICE_UNAVAILABLE, &problem);
    };
    let (outgoing, messages) = mpsc::channel(QUEUE_LENGTH);
    let disconnected = CancellationToken::new();
    tokio::spawn(serve(
        sessions,
        id.clone(),
        incoming,
        outgoing,
        disconnected.clone(),
    ));
    let endpoint = format!("{}/messages?session_id={id}", prefix(&headers));
    let events = events(endpoint, messages, disconnected.drop_guard());
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    let headers = [("cache-control", "no-store"), ("x-accel-buffering", "no")];
    (headers, Sse::new(events).keep_alive(keep_alive)).into_response()
}

/// Serves a session until its stream closes.
async fn serve(
    sessions: Sessions,
    id: String,
    mut incoming: mpsc::Receiver<ClientJsonRpcMessage>,
    outgoing: mpsc::Sender<ServerJsonRpcMessage>,
    disconnected: CancellationToken,
) {
    let transport = (
        PollSender::new(outgoing),
        stream::poll_fn(move |context| incoming.poll_recv(context)),
    );
    let handler = sessions.handler.clone();
    if let Ok(running) = serve_server_with_ct(handler, transport, disconnected).await {
        let _ = running.waiting().await;
    }
    sessions.remove(&id);
}

fn events(
    endpoint: String,
    messages: mpsc::Receiver<ServerJsonRpcMessage>,
    guard: DropGuard,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let first = stream::iter([Ok(Event::default().event("endpoint").data(endpoint))]);
    let rest = stream::unfold((messages, guard), |(mut messages, guard)| async move {
        let message = messages.recv().await?;
        let event = Event::default()
            .event("message")
            .json_data(message)
            .unwrap_or_else(|_| Event::default().comment("a message could not be serialised"));
        Some((Ok(event), (messages, guard)))
    });
    first.chain(rest)
}

#[derive(Deserialize)]
struct SessionQuery {
    #[serde(alias = "sessionId")]
    session_id: String,
}

async fn message(
    State(sessions): State<Sessions>,
    Query(query): Query<SessionQuery>,
    body: Bytes,
) -> Response {
    let Some(session) = sessions.find(&query.session_id) else {
        return refuse(
            StatusCode::NOT_FOUND,
            "unknown session: open /sse and use the URL from its first event",
        );
    };
    let message = match serde_json::from_slice::<ClientJsonRpcMessage>(&body) {
        Ok(message) => message,
        Err(error) => {
            let problem = format!("invalid MCP message: {error}");
            return refuse(StatusCode::BAD_REQUEST, &problem);
        }
    };
    match session.send_timeout(message, QUEUE_TIMEOUT).await {
        Ok(()) => (StatusCode::ACCEPTED, "Accepted").into_response(),
        Err(mpsc::error::SendTimeoutError::Closed(_)) => {
            refuse(StatusCode::NOT_FOUND, "the session has ended")
        }
        Err(mpsc::error::SendTimeoutError::Timeout(_)) => refuse(
            StatusCode::TOO_MANY_REQUESTS,
            "the message queue is full: try again later",
        ),
    }
}

/// The path prefix of our routes for this client.
fn prefix(headers: &HeaderMap) -> &str {
    let prefix = headers
        .get(FORWARDED_PREFIX)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .trim_end_matches('/');
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    // Two leading slashes would name another host.
    let is_path =
        prefix.starts_with('/') && !prefix.starts_with("//") && prefix.bytes().all(is_plain);
    if is_path && prefix.len() <= MAX_PREFIX {
        prefix
    } else {
        ""
    }
}

fn refuse(status: StatusCode, problem: &str) -> Response {
    (status, Json(json!({"error": problem}))).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_path_is_a_prefix() {
        let prefix_of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(FORWARDED_PREFIX, value.parse().unwrap());
            prefix(&headers).to_owned()
        };
        assert_eq!(prefix_of("/p/abc-1/6060"), "/p/abc-1/6060");
        assert_eq!(prefix_of("/p/abc/6060/"), "/p/abc/6060");
        for bad in ["//evil.example", "http://evil.example", "/a?b", "/a b", "a"] {
            assert_eq!(prefix_of(bad), "", "{bad}");
        }
        assert_eq!(prefix(&HeaderMap::new()), "");
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod stream_tests;
