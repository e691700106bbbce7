//! The control plane over MCP: the protocol, tenants, scopes and bounds, over a provider in memory.

mod commands;

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::Request;
use futures_util::future::join_all;
use sandyard_core::Scope;
use sandyard_provider_fake::{FakeConfig, FakeProvider};
use sandyard_server::ServerSettings;
use serde_json::{Value, json};

use crate::app::{Actor, Answer, At, TestApp};

const TOOLS: [&str; 18] = [
    "sandbox_create",
    "sandbox_pause",
    "sandbox_resume",
    "sandbox_set_timeout",
    "sandbox_delete",
    "sandbox_list",
    "sandbox_info",
    "sandbox_logs",
    "template_list",
    "run_command",
    "read_file",
    "write_file",
    "list_files",
    "expose_port",
    "sandbox_snapshot",
    "sandbox_fork",
    "sandbox_tools",
    "sandbox_call_tool",
];

/// A server whose sandboxes have files and a small shell, in memory.
async fn with_agents() -> TestApp {
    let provider = FakeProvider::for_users(&FakeConfig::default()).unwrap();
    TestApp::with(provider, ServerSettings::default()).await
}

fn message(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

async fn post(app: &TestApp, key: Option<&str>, path: &str, body: &Value) -> Answer {
    let mut request = Request::post(path)
        .header("host", "yard.test")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    if let Some(key) = key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    let request = request.body(Body::from(body.to_string())).unwrap();
    app.send(At::Network, request).await
}

/// The messages of an answer, in whichever form they came.
fn messages(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{answer:?}");
    if answer.headers["content-type"] == "application/json" {
        return vec![answer.json()];
    }
    messages_in(&answer.text)
}

/// The messages in a stream of events, as far as it has come.
fn messages_in(text: &str) -> Vec<Value> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("data:"));
    lines
        .filter_map(|line| serde_json::from_str(line.trim()).ok())
        .collect()
}

async fn call_as(app: &TestApp, key: Option<&str>, tool: &str, arguments: Value) -> Value {
    let body = message("tools/call", json!({"name": tool, "arguments": arguments}));
    let answer = post(app, key, "/mcp", &body).await;
    messages(&answer).pop().expect("an answer")
}

/// Calls a tool as Alice; it must succeed.
async fn call(app: &TestApp, tool: &str, arguments: Value) -> Value {
    let answer = call_as(app, app.key(Actor::Alice), tool, arguments).await;
    let result = &answer["result"];
    assert_eq!(result["isError"], false, "{tool}: {answer}");
    result["structuredContent"].clone()
}

/// The code of a call that must fail as a result.
fn code_of(answer: &Value) -> String {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    let body: Value = serde_json::from_str(text).unwrap();
    body["code"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn clients_of_every_age_begin_at_both_paths() {
    let app = TestApp::new().await;
    let key = app.key(Actor::Alice);
    for path in ["/mcp", "/mcp/"] {
        for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            let hello = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
            let answer = post(&app, key, path, &message("initialize", hello)).await;
            let result = &messages(&answer)[0]["result"];
            assert_eq!(result["protocolVersion"], version);
            assert_eq!(result["serverInfo"]["name"], "sandyard");
            assert!(
                result["instructions"]
                    .as_str()
                    .unwrap()
                    .contains("sandbox_create")
            );
            assert!(answer.headers.contains_key("mcp-session-id"));
        }
    }
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post(&app, key, "/mcp", &ready).await.status, 202);
    assert_eq!(app.ask(Actor::Alice, "GET", "/mcp", None).await.status, 405);
    assert_eq!(
        app.ask(Actor::Alice, "DELETE", "/mcp", None).await.status,
        204
    );
}

#[tokio::test]
async fn every_tool_is_listed_with_what_it_takes_and_does() {
    let app = TestApp::new().await;
    let answer = post(
        &app,
        app.key(Actor::Alice),
        "/mcp",
        &message("tools/list", json!({})),
    )
    .await;
    let tools = messages(&answer)[0]["result"]["tools"].clone();
    let names: BTreeSet<_> = tools
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, BTreeSet::from(TOOLS));
    for tool in tools.as_array().unwrap() {
        assert!(
            tool["title"].is_string() && tool["description"].is_string(),
            "{tool}"
        );
        for hint in [
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
        ] {
            assert!(tool["annotations"][hint].is_boolean(), "{tool}");
        }
        assert_eq!(
            tool["outputSchema"].is_object(),
            tool["name"] != "sandbox_call_tool",
            "{tool}"
        );
    }
}

#[tokio::test]
async fn a_sandbox_is_made_used_and_deleted_by_tools_alone() {
    let app = with_agents().await;
    let made = call(&app, "sandbox_create", json!({"name": "web", "timeout": 600, "env": {"A": "b"}, "metadata": {"k": "v"}, "memory": "512m", "cpu": 1})).await;
    let id = made["sandbox_id"].as_str().unwrap();
    assert_eq!(made["mcp_url"], format!("http://yard.test/p/{id}/6060/mcp"));
    let info = call(&app, "sandbox_info", json!({"sandbox_id": "web"})).await;
    assert_eq!(
        (&info["sandbox_id"], &info["limits"]["memory"]),
        (&made["sandbox_id"], &json!("512m"))
    );
    let list = call(
        &app,
        "sandbox_list",
        json!({"metadata": {"k": "v"}, "status": "running"}),
    )
    .await;
    assert_eq!(list["sandboxes"][0]["sandbox_id"], made["sandbox_id"]);
    call(
        &app,
        "write_file",
        json!({"sandbox_id": id, "path": "/tmp/a.txt", "content": "one\ntwo\n"}),
    )
    .await;
    let file = call(
        &app,
        "read_file",
        json!({"sandbox_id": id, "path": "/tmp/a.txt", "offset": 2}),
    )
    .await;
    assert_eq!(
        file,
        json!({"content": "two\n", "lines": 2, "truncated": false})
    );
    let files = call(
        &app,
        "list_files",
        json!({"sandbox_id": id, "path": "/tmp"}),
    )
    .await;
    assert_eq!(files["entries"][0]["path"], "/tmp/a.txt");
    let port = call(&app, "expose_port", json!({"sandbox_id": id, "port": 3000})).await;
    assert!(
        port["signed_url"]
            .as_str()
            .unwrap()
            .contains("/3000/?sandyard_token=")
    );
    let port = call(&app, "expose_port", json!({"sandbox_id": id, "port": 6060})).await;
    assert!(
        port["signed_url"]
            .as_str()
            .unwrap()
            .contains("/6060/mcp?sandyard_token=")
    );
    assert!(call(&app, "template_list", json!({})).await["templates"].is_array());
    let timeout = call(
        &app,
        "sandbox_set_timeout",
        json!({"sandbox_id": id, "timeout": 60}),
    )
    .await;
    assert!(timeout["expires_at"].is_string());
    assert_eq!(
        call(&app, "sandbox_pause", json!({"sandbox_id": id})).await["status"],
        "paused"
    );
    assert_eq!(
        call(&app, "sandbox_resume", json!({"sandbox_id": id})).await["status"],
        "running"
    );
    call(&app, "sandbox_delete", json!({"sandbox_id": id})).await;
    assert_eq!(
        call(&app, "sandbox_list", json!({})).await["sandboxes"],
        json!([])
    );
    // Each call that changed something is in the audit, under its own name.
    app.app.flush_audit().await;
    let audit = app.get(Actor::Admin, "/audit").await.ok().to_string();
    for action in ["mcp sandbox_create", "mcp write_file", "mcp sandbox_delete"] {
        assert!(audit.contains(action), "{audit}");
    }
    assert!(
        !audit.contains("mcp sandbox_list") && audit.contains(id),
        "{audit}"
    );
}

#[tokio::test]
async fn what_is_somebody_elses_is_not_found() {
    let app = with_agents().await;
    let id = app.sandbox(Actor::Alice).await;
    let bob = app.key(Actor::Bob);
    let named = json!({"sandbox_id": id});
    let with = |more: Value| {
        let mut arguments = named.clone();
        arguments
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        arguments
    };
    for (tool, arguments) in [
        ("sandbox_info", named.clone()),
        ("sandbox_pause", named.clone()),
        ("sandbox_resume", named.clone()),
        ("sandbox_delete", named.clone()),
        ("sandbox_logs", named.clone()),
        ("sandbox_fork", named.clone()),
        ("sandbox_tools", named.clone()),
        ("list_files", named.clone()),
        ("sandbox_snapshot", with(json!({"name": "mine"}))),
        ("sandbox_set_timeout", with(json!({"timeout": 1}))),
        ("run_command", with(json!({"command": "id"}))),
        ("read_file", with(json!({"path": "/etc/passwd"}))),
        ("write_file", with(json!({"path": "a", "content": "b"}))),
        ("expose_port", with(json!({"port": 80}))),
        ("sandbox_call_tool", with(json!({"tool": "Bash"}))),
    ] {
        let answer = call_as(&app, bob, tool, arguments).await;
        assert_eq!(code_of(&answer), "sandbox_not_found", "{tool}");
    }
    let list = call_as(&app, bob, "sandbox_list", json!({})).await;
    assert_eq!(list["result"]["structuredContent"]["sandboxes"], json!([]));
    assert_eq!(
        app.get(Actor::Alice, &format!("/sandboxes/{id}/status"))
            .await
            .ok()["status"],
        "running"
    );
}

#[tokio::test]
async fn a_key_is_good_for_what_it_may_and_no_more() {
    let app = with_agents().await;
    let id = app.sandbox(Actor::Alice).await;
    let key = app
        .app
        .auth()
        .create_key("alice", "look", &[Scope::Read], None)
        .await
        .unwrap()
        .secret;
    let answer = post(&app, Some(&key), "/mcp", &message("tools/list", json!({}))).await;
    let tools = messages(&answer)[0]["result"]["tools"].clone();
    assert!(
        tools
            .as_array()
            .unwrap()
            .iter()
            .all(|tool| tool["annotations"]["readOnlyHint"] == true),
        "{tools}"
    );
    for (tool, arguments) in [
        ("sandbox_create", json!({})),
        ("sandbox_delete", json!({"sandbox_id": id})),
        ("run_command", json!({"sandbox_id": id, "command": "id"})),
        ("read_file", json!({"sandbox_id": id, "path": "a"})),
    ] {
        assert_eq!(
            code_of(&call_as(&app, Some(&key), tool, arguments).await),
            "forbidden",
            "{tool}"
        );
    }
    let info = call_as(&app, Some(&key), "sandbox_info", json!({"sandbox_id": id})).await;
    assert_eq!(info["result"]["isError"], false);
    let hello = message("tools/list", json!({}));
    for actor in [Actor::Anonymous, Actor::WrongKey, Actor::Expired] {
        let answer = post(&app, app.key(actor), "/mcp", &hello).await;
        assert_eq!(answer.status, 401, "{actor:?}");
    }
    // A page in a browser of this host is nobody either.
    let request = Request::post("/mcp")
        .header("host", "localhost:8100")
        .header("origin", "http://evil.example")
        .header("content-type", "application/json")
        .body(Body::from(hello.to_string()))
        .unwrap();
    assert_eq!(app.send(At::Loopback, request).await.status, 403);
}

#[tokio::test]
async fn malformed_calls_are_refused_with_an_explanation() {
    let app = with_agents().await;
    let key = app.key(Actor::Alice);
    let id = app.sandbox(Actor::Alice).await;
    for (tool, arguments) in [
        ("sandbox_info", json!({})),
        ("sandbox_info", json!({"sandbox_id": 7})),
        ("sandbox_info", json!({"sandbox_id": "a b\u{0}"})),
        ("sandbox_info", json!({"sandbox_id": id, "extra": 1})),
        ("sandbox_create", json!({"timeout": -1})),
        ("sandbox_create", json!({"env": {"A=B": "c"}})),
        ("run_command", json!({"sandbox_id": id, "command": ""})),
        (
            "run_command",
            json!({"sandbox_id": id, "command": "id", "timeout": 1e9}),
        ),
        ("read_file", json!({"sandbox_id": id, "path": "a\u{0}b"})),
        ("expose_port", json!({"sandbox_id": id, "port": 0})),
        (
            "sandbox_snapshot",
            json!({"sandbox_id": id, "name": "../x"}),
        ),
    ] {
        let code = code_of(&call_as(&app, key, tool, arguments.clone()).await);
        assert!(
            ["invalid", "sandbox_not_found", "validation_error"].contains(&code.as_str()),
            "{tool} {arguments}: {code}"
        );
    }
    let answer = call_as(&app, key, "no_such_tool", json!({})).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    for body in [json!(7), json!([]), json!({"jsonrpc": "2.0"})] {
        let answer = post(&app, key, "/mcp", &body).await;
        assert!(answer.status.is_client_error(), "{body}: {answer:?}");
    }
    let request = Request::post("/mcp")
        .header("host", "yard.test")
        .header("x-api-key", key.unwrap());
    let long = request
        .header("content-type", "application/json")
        .body(Body::from(vec![b' '; 9 << 20]))
        .unwrap();
    assert_eq!(app.send(At::Network, long).await.status, 413);
}

#[tokio::test]
async fn one_line_of_curl_gets_json() {
    let app = TestApp::new().await;
    let request = app.request(
        Actor::Alice,
        "POST",
        "/mcp",
        Some(message("tools/call", json!({"name": "sandbox_list"}))),
    );
    let answer = app.send(At::Network, request).await;
    assert_eq!(
        answer.ok()["result"]["structuredContent"]["sandboxes"],
        json!([])
    );
}

#[tokio::test]
async fn fifty_calls_at_once_are_fifty_answers() {
    let app = with_agents().await;
    let calls = (0..50).map(|n| {
        call(
            &app,
            "sandbox_create",
            json!({"metadata": {"n": n.to_string()}}),
        )
    });
    let made = join_all(calls).await;
    let ids: BTreeSet<_> = made
        .iter()
        .map(|made| made["sandbox_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), 50);
}
