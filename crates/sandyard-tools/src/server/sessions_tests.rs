//! Sessions that end and sessions that do not, through the library's own service.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use axum::response::Response;
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::ServiceExt;

use super::super::mcp::Handler;
use super::super::streamable;
use super::*;
use crate::custom::testing::until;
use crate::files::test_env;
use crate::registry::Registry;

/// Longer than any test.
const LONG: Duration = Duration::from_secs(3600);

struct TestEnv {
    _tools: test_env::TestEnv,
    sessions: Arc<Sessions>,
    app: Router,
}

impl TestEnv {
    fn with(max_sessions: usize, idle_timeout: Duration) -> Self {
        let env = test_env::TestEnv::new();
        let sessions = Arc::new(Sessions::with(max_sessions, idle_timeout));
        let registry = Arc::new(Registry::new(env.tool_state.custom.clone()));
        let handler = Handler::new(env.tool_state.clone(), registry);
        let app = streamable(handler, sessions.clone());
        Self {
            _tools: env,
            sessions,
            app,
        }
    }

    async fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Response {
        let mut request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        self.app.clone().oneshot(request).await.unwrap()
    }

    async fn post(&self, session: Option<&str>, body: Value) -> Response {
        let mut headers = vec![("accept", "application/json, text/event-stream")];
        headers.extend(session.map(|session| ("mcp-session-id", session)));
        self.send("POST", &headers, &body.to_string()).await
    }

    async fn hello(&self) -> Response {
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
        self.post(None, hello).await
    }

    /// A session that has shaken hands.
    async fn begin(&self) -> String {
        let response = self.hello().await;
        assert_eq!(response.status(), StatusCode::OK);
        let id = response.headers()["mcp-session-id"].to_str().unwrap();
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let initialized = self.post(Some(id), initialized).await;
        assert_eq!(initialized.status(), StatusCode::ACCEPTED);
        id.to_owned()
    }

    /// Uses a session, if it is there.
    async fn is_there(&self, session: &str) -> bool {
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        let response = self.post(Some(session), ping).await;
        let is_there = response.status() == StatusCode::OK;
        assert!(is_there || response.status() == StatusCode::NOT_FOUND);
        if is_there {
            // It ends with the answer.
            to_bytes(response.into_body(), 100_000).await.unwrap();
        }
        is_there
    }

    /// Begins a call that never returns, and disconnects: the client could resume it.
    async fn call(&self, session: &str) {
        let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
            "name": "run_command", "arguments": {"command": "sleep 1000", "timeout": 180}}});
        let response = self.post(Some(session), call).await;
        assert_eq!(response.status(), StatusCode::OK);
        until("the call is under way", || self.is_busy(session)).await;
    }

    async fn cancel(&self, session: &str) {
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
        self.post(Some(session), cancel).await;
        until("the call is over", || !self.is_busy(session)).await;
    }

    fn is_busy(&self, session: &str) -> bool {
        let activity = self.sessions.activity.lock();
        activity
            .get(session)
            .is_some_and(|session| session.idle().is_none())
    }

    fn count(&self) -> usize {
        self.sessions.activity.lock().len()
    }
}

#[tokio::test]
async fn the_one_that_was_idle_for_longest_makes_room() {
    let env = TestEnv::with(3, LONG);
    let (first, second, third) = (env.begin().await, env.begin().await, env.begin().await);
    assert!(env.is_there(&first).await);
    let fourth = env.begin().await;
    assert!(!env.is_there(&second).await, "it was idle for longest");
    assert_eq!(env.count(), 3);
    // A call counts for more than time, and so does somebody who listens.
    env.call(&third).await;
    let accept = ("accept", "text/event-stream");
    let listening = [accept, ("mcp-session-id", first.as_str())];
    let stream = env.send("GET", &listening, "").await;
    assert_eq!(stream.status(), StatusCode::OK);
    let fifth = env.begin().await;
    assert!(!env.is_there(&fourth).await, "nobody listens to it");
    assert!(env.is_there(&first).await && env.is_there(&third).await);
    // A client that has disconnected does not listen.
    drop(stream);
    assert!(env.is_there(&fifth).await);
    env.begin().await;
    assert!(!env.is_there(&first).await && env.is_there(&third).await);
    assert_eq!(env.count(), 3);
}

#[tokio::test]
async fn what_needs_no_session_is_answered_when_there_is_no_room() {
    let env = TestEnv::with(1, LONG);
    let only = env.begin().await;
    env.call(&only).await;
    let refused = env.hello().await;
    assert!(!refused.status().is_success());
    let text = to_bytes(refused.into_body(), 100_000).await.unwrap();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(text.contains("calls in progress"), "{text}");
    let version = "2026-07-28";
    let headers = [
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", version),
        ("mcp-method", "tools/list"),
    ];
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}}}});
    let answer = env.send("POST", &headers, &list.to_string()).await;
    let status = answer.status();
    let body = to_bytes(answer.into_body(), 10_000_000).await.unwrap();
    let body = String::from_utf8_lossy(&body).into_owned();
    assert!(
        status == StatusCode::OK && body.contains("run_command"),
        "{status}: {body}"
    );
    // The call was left alone, and its session makes room when it is over.
    assert!(env.is_busy(&only));
    env.cancel(&only).await;
    env.begin().await;
    assert!(!env.is_there(&only).await);
}

/// A message as it comes.
fn message<T: serde::de::DeserializeOwned>(message: Value) -> T {
    serde_json::from_value(message).unwrap()
}

// The time there is nobody's but the test's.
#[tokio::test(start_paused = true)]
async fn an_unused_session_ends_but_not_during_a_call() {
    let life = Duration::from_secs(3600);
    let sessions = Sessions::with(10, life);
    let (id, mut transport) = sessions.create_session().await.unwrap();
    let hello = message(
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}),
    );
    let answered = async {
        transport.receive().await.unwrap();
        let answer = json!({"jsonrpc": "2.0", "id": 0, "result": {}});
        transport.send(message(answer)).await.unwrap();
    };
    let (greeted, ()) = tokio::join!(sessions.initialize_session(&id, hello), answered);
    greeted.unwrap();
    // Longer than the longest call without a word.
    let long = life * 5;
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "codex"}});
    let stream = sessions.create_stream(&id, message(call)).await.unwrap();
    // A client may disconnect during a call, and resume it later.
    drop(stream);
    transport.receive().await.unwrap();
    let waited = tokio::time::timeout(long, transport.receive()).await;
    assert!(waited.is_err(), "it ended during the call");
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    transport.send(message(answer)).await.unwrap();
    let stream = sessions.create_standalone_stream(&id).await.unwrap();
    let waited = tokio::time::timeout(long, transport.receive()).await;
    assert!(waited.is_err(), "it ended while somebody listened");
    drop(stream);
    let idle = Instant::now();
    assert!(transport.receive().await.is_none());
    let idle = idle.elapsed();
    assert!((life..life * 2).contains(&idle), "{idle:?}");
}
