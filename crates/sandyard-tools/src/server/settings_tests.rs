//! The plain shim and the settings' routes, through the whole router.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::super::listen::ConnectionSource;
use super::super::mcp::Handler;
use super::super::router;
use crate::custom::testing::{notes, small_server, until};
use crate::options::{Options, TokenHash};
use crate::registry::Registry;
use crate::tool_state::ToolState;

pub(in crate::server) struct TestEnv {
    pub(in crate::server) folder: tempfile::TempDir,
    tool_state: Arc<ToolState>,
    app: Router,
}

impl TestEnv {
    pub(in crate::server) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tool_state = Arc::new(ToolState::new(Options {
            workspace: folder.path().to_owned(),
            more_roots: Vec::new(),
            home: folder.path().to_owned(),
            token: Some(TokenHash::of("token")),
            port: 6060,
        }));
        let registry = Arc::new(Registry::new(tool_state.custom.clone()));
        let app = router(Handler::new(tool_state.clone(), registry));
        Self {
            folder,
            tool_state,
            app,
        }
    }

    pub(in crate::server) async fn send(
        &self,
        method: &str,
        path: &str,
        body: impl Into<Body>,
    ) -> Response {
        self.send_with(method, path, &[], body).await
    }

    pub(in crate::server) async fn send_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Response {
        let default_headers = [("content-type", "application/json"), ("host", "localhost")];
        let headers = [&default_headers, headers].concat();
        self.send_by(ConnectionSource::Agent, method, path, &headers, body)
            .await
    }

    /// The same by the other door, with no headers but these.
    pub(in crate::server) async fn send_by_tcp(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Response {
        self.send_by(ConnectionSource::Tcp, method, path, headers, body)
            .await
    }

    async fn send_by(
        &self,
        source: ConnectionSource,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Response {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(body.into()).unwrap();
        request.extensions_mut().insert(source);
        self.app.clone().oneshot(request).await.unwrap()
    }

    pub(in crate::server) async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        read(self.send("POST", path, body.to_string()).await).await
    }

    pub(in crate::server) async fn with_small_server(&self) {
        let body = json!({"mcpServers": {"small": small_server(self.folder.path())}});
        let (status, answer) = self.post("/custom-mcp", body).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(answer["servers"]["small"]["status"], "ok", "{answer}");
    }
}

async fn read(response: Response) -> (StatusCode, Value) {
    let status = response.status();
    let body = to_bytes(response.into_body(), 10_000_000).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

#[tokio::test]
async fn a_plain_request_calls_a_tool() {
    let env = TestEnv::new();
    env.with_small_server().await;
    for (path, key) in [("/", "args"), ("/mcp", "args"), ("/mcp/", "arguments")] {
        let (status, answer) = env
            .post(path, json!({"tool": "mcp_small_echo", key: {"text": "hi"}}))
            .await;
        assert_eq!(status, StatusCode::OK);
        let expected = json!({
            "success": true, "tool": "mcp_small_echo", "result": "hi", "is_error": false,
            "content": [{"type": "text", "text": "hi"}], "structured": {"text": "hi"},
        });
        assert_eq!(answer, expected, "{path}");
    }
    let (status, answer) = env.post("/mcp", json!({"tool": "mcp_small_refuse"})).await;
    assert_eq!(
        (status, &answer["success"], &answer["is_error"]),
        (StatusCode::OK, &json!(false), &json!(true))
    );
    let (status, answer) = env.post("/mcp", json!({"tool": "nothing"})).await;
    assert_eq!(
        (status, &answer["success"]),
        (StatusCode::NOT_FOUND, &json!(false))
    );
    assert!(answer["hint"].is_string());
    let (status, _) = env.post("/mcp", json!({"tool": 7})).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn what_a_form_of_another_page_could_send_is_refused() {
    let env = TestEnv::new();
    let plain = json!({"tool": "run_command", "args": {"command": "touch made"}}).to_string();
    let servers = json!({"mcpServers": {"small": small_server(env.folder.path())}}).to_string();
    let token = ("authorization", "Bearer token");
    for (path, body) in [("/", &plain), ("/mcp", &plain), ("/custom-mcp", &servers)] {
        for kind in [
            None,
            Some("text/plain"),
            Some("application/x-www-form-urlencoded"),
            Some("multipart/form-data; boundary=application/json"),
        ] {
            let mut headers = vec![("host", "localhost"), token];
            headers.extend(kind.map(|kind| ("content-type", kind)));
            let sent = env.send_by_tcp("POST", path, &headers, body.clone());
            let (status, answer) = read(sent.await).await;
            assert_eq!(
                status,
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "{path} {kind:?}"
            );
            let error = answer["error"].as_str().unwrap();
            assert!(error.contains("application/json"), "{answer}");
        }
        let content_type = ("content-type", "Application/JSON; charset=utf-8");
        let headers = [("host", "localhost"), token, content_type];
        let sent = env.send_by_tcp("POST", path, &headers, body.clone());
        assert_eq!(sent.await.status(), StatusCode::OK, "{path}");
    }
    assert!(!env.tool_state.custom.tools().is_empty());
}

#[tokio::test]
async fn every_other_request_passes() {
    let env = TestEnv::new();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "tool": "not plain", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let accept = [("accept", "application/json, text/event-stream")];
    let response = env
        .send_with("POST", "/mcp", &accept, hello.to_string())
        .await;
    let has_session = response.headers().contains_key("mcp-session-id");
    let status = response.status();
    assert!(status == StatusCode::OK && has_session, "{status}");
    for body in ["[]", "no json", r#"{"method": "x"}"#] {
        let response = env.send("POST", "/", body).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{body}");
    }
}

#[tokio::test]
async fn a_client_that_disconnects_cancels_the_work() {
    let env = TestEnv::new();
    env.with_small_server().await;
    let slow = env.post("/mcp", json!({"tool": "mcp_small_slow"}));
    let begins = until("the server is at work", || {
        notes(env.folder.path()).contains("at work")
    });
    tokio::select! {
        answer = slow => panic!("it never ends by itself: {answer:?}"),
        // Then nobody waits any more.
        () = begins => {}
    }
    until("the work is cancelled", || {
        notes(env.folder.path()).contains("cancelled")
    })
    .await;
}

#[tokio::test]
async fn settings_are_taken_or_refused_with_the_field() {
    let env = TestEnv::new();
    let (status, answer) = env
        .post(
            "/credential",
            json!({"user_api_key": "key", "session_id": "s"}),
        )
        .await;
    assert_eq!((status, &answer["success"]), (StatusCode::OK, &json!(true)));
    let (status, _) = env
        .post(
            "/tool-server-url",
            json!({"tool_server_url": "https://x.example/a"}),
        )
        .await;
    assert_eq!(status, StatusCode::OK);
    let (status, _) = env
        .post(
            "/port-url",
            json!({"template": "http://{port}-abc.localhost:8100/"}),
        )
        .await;
    assert_eq!(status, StatusCode::OK);
    let config = env.tool_state.runtime_config();
    assert_eq!(config.credential.as_ref().unwrap().user_api_key, "key");
    assert_eq!(
        config.tool_server_url.as_deref(),
        Some("https://x.example/a")
    );
    assert!(config.port_url.is_some());
    assert!(!format!("{config:?}").contains("key\""));
    for (path, body, field) in [
        ("/credential", json!({"session_id": "s"}), "user_api_key"),
        (
            "/credential",
            json!({"user_api_key": "a\nb"}),
            "user_api_key",
        ),
        (
            "/tool-server-url",
            json!({"tool_server_url": "file:///etc"}),
            "tool_server_url",
        ),
        ("/tool-server-url", json!({}), "tool_server_url"),
        ("/port-url", json!({"template": "http://x/"}), "{port}"),
        (
            "/custom-mcp",
            json!({"mcpServers": {"a": {"args": []}}}),
            "mcpServers.a",
        ),
        ("/custom-mcp", json!({}), "mcpServers"),
    ] {
        let (status, answer) = env.post(path, body.clone()).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{path} {body}");
        assert!(
            answer["error"].as_str().unwrap().contains(field),
            "{answer}"
        );
    }
    let mut over_tcp = Request::post("/credential")
        .header("host", "localhost")
        .body(Body::from("{}"))
        .unwrap();
    over_tcp.extensions_mut().insert(ConnectionSource::Tcp);
    let refused = env.app.clone().oneshot(over_tcp).await.unwrap();
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn codex_is_registered_as_far_as_it_can_be() {
    let env = TestEnv::new();
    let program = env.folder.path().join(".local/bin/codex");
    if crate::process::find_program("codex", &[]).is_none() {
        let (status, answer) = env.post("/register-codex", json!({})).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert!(answer["error"].as_str().unwrap().contains("npm install"));
    }
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    let write = |script: &str| crate::files::test_env::write_program(&program, script);
    for error in [
        "Error: stdin is not a terminal",
        "error: unrecognized subcommand",
    ] {
        write(&format!("#!/bin/sh\necho '{error}' >&2; exit 1\n"));
        let (status, answer) = env.post("/register-codex", json!({})).await;
        assert_eq!((status, &answer["success"]), (StatusCode::OK, &json!(true)));
        assert_eq!(answer["tools"], json!(["codex"]), "{answer}");
    }
    write("#!/bin/sh\necho 'its settings are broken' >&2; exit 1\n");
    let (status, answer) = env.post("/register-codex", json!({})).await;
    assert_eq!(
        (status, &answer["success"]),
        (StatusCode::BAD_GATEWAY, &json!(false))
    );
    let error = answer["error"].as_str().unwrap();
    assert!(error.contains("its settings are broken"), "{answer}");
    assert!(env.tool_state.custom.tools().is_empty());
    small_server(env.folder.path());
    let small = env.folder.path().join("small.py").display().to_string();
    write(&format!(
        "#!/bin/sh\n[ \"$1\" = mcp-server ] || exit 1\nNOTES=/dev/null exec python3 {small}\n"
    ));
    let (_, answer) = env.post("/register-codex", json!({})).await;
    assert_eq!(answer["tools"][0], "mcp_codex_echo", "{answer}");
    // It stays when the others are exchanged.
    env.with_small_server().await;
    env.post("/custom-mcp", json!({"mcpServers": {}})).await;
    assert!(env.tool_state.custom.find("mcp_codex_echo").is_some());
    assert!(env.tool_state.custom.find("mcp_small_echo").is_none());
}
