//! Keys without the scope `use` get no credential that would give it to them, in any dialect.

use axum::body::Body;
use axum::http::Request;
use sandyard_core::Scope;
use serde_json::{Value, json};

use crate::app::{Actor, Answer, At, TestApp};

/// Every request that makes, wakes, copies or shows a sandbox; `{id}` is its id.
const SANDBOX_CALLS: [(&str, &str); 26] = [
    ("POST", "/e2b/sandboxes/{id}/pause"),
    ("POST", "/e2b/sandboxes/{id}/resume"),
    ("POST", "/e2b/sandboxes/{id}/connect"),
    ("POST", "/e2b/v2/sandboxes/{id}/connect"),
    ("POST", "/e2b/sandboxes/{id}/fork"),
    ("POST", "/e2b/sandboxes/{id}/snapshots"),
    ("POST", "/e2b/sandboxes"),
    ("POST", "/e2b/v2/sandboxes"),
    ("GET", "/e2b/sandboxes/{id}"),
    ("GET", "/e2b/sandboxes"),
    ("GET", "/e2b/v2/sandboxes"),
    ("GET", "/sandboxes"),
    ("GET", "/sandboxes/{id}/info"),
    ("GET", "/sandboxes/{id}/urls"),
    ("GET", "/sandboxes/{id}/status"),
    ("GET", "/sandboxes/{id}/ports/8080"),
    ("GET", "/sandboxes/{id}/network"),
    ("GET", "/sandboxes/{id}/events"),
    ("POST", "/sandboxes/create"),
    ("POST", "/sandboxes/{id}/pause"),
    ("POST", "/sandboxes/{id}/resume"),
    ("POST", "/sandboxes/{id}/fork"),
    ("POST", "/sandboxes/{id}/ports/8080"),
    ("POST", "/api/v1/agent/sandboxes/create"),
    ("GET", "/api/v1/agent/sandboxes/{id}/info"),
    ("GET", "/api/sandboxes/{id}"),
];

fn body_of(path: &str) -> Value {
    match path {
        "/e2b/sandboxes" | "/e2b/v2/sandboxes" => {
            json!({"templateID": "base", "network": {"allowPublicTraffic": false}})
        }
        _ if path.contains("/ports/") => json!({"public": false}),
        _ => json!({}),
    }
}

async fn call(app: &TestApp, key: &str, method: &str, path: &str, body: &Value) -> Answer {
    // Only MCP needs both; elsewhere a stream of events would never end.
    let accept = match path {
        "/mcp" => "application/json, text/event-stream",
        _ => "application/json",
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("x-api-key", key)
        .header("content-type", "application/json")
        .header("accept", accept);
    let body = match method {
        "GET" => Body::empty(),
        _ => Body::from(body.to_string()),
    };
    app.send(At::Network, request.body(body).unwrap()).await
}

/// What would open a sandbox or a volume: every access token, traffic token and volume token there is, and signatures of links.
async fn credentials(app: &TestApp) -> Vec<String> {
    let service = app.app.service();
    let root = sandyard_core::Caller::system();
    let mut found = vec!["token=".to_owned()];
    let filter = sandyard_store::model::SandboxFilter {
        limit: 1000,
        ..Default::default()
    };
    for sandbox in app.app.store().list_sandboxes(&filter).await.unwrap().items {
        found.push(app.app.auth().traffic_token(&sandbox.id));
        found.push(sandbox.access_token);
    }
    for volume in service.volumes(&root, None).await.unwrap() {
        found.push(volume.token);
    }
    found.retain(|text| !text.is_empty());
    found
}

#[tokio::test]
async fn no_answer_gives_a_key_without_use_what_opens_a_sandbox() {
    for scopes in [
        &[Scope::Manage][..],
        &[Scope::Read, Scope::Manage],
        &[Scope::Read],
    ] {
        let app = TestApp::new().await;
        let auth = app.app.auth();
        let key = auth.create_key("alice", "limited", scopes, None).await;
        let key = key.unwrap().secret;
        let id = app.sandbox(Actor::Alice).await;
        let volume = app
            .post(Actor::Alice, "/e2b/volumes", json!({"name": "data"}))
            .await
            .json();
        assert!(volume["token"].is_string(), "{volume}");
        let mut seen = 0;
        let mut answers = Vec::new();
        for (method, path) in SANDBOX_CALLS {
            let path = path.replace("{id}", &id);
            let answer = call(&app, &key, method, &path, &body_of(&path)).await;
            seen += u32::from(answer.status.is_success());
            assert_ne!(answer.status, 404, "{method} {path}");
            answers.push((path, answer));
        }
        let volume_id = volume["volumeID"].as_str().unwrap();
        for (method, path) in [
            ("POST", "/e2b/volumes".to_owned()),
            ("GET", format!("/e2b/volumes/{volume_id}")),
            ("GET", format!("/volumes/{volume_id}")),
            ("GET", "/volumes".to_owned()),
        ] {
            let answer = call(&app, &key, method, &path, &json!({"name": "more"})).await;
            seen += u32::from(answer.status.is_success());
            answers.push((path, answer));
        }
        for (tool, arguments) in [
            ("sandbox_create", json!({})),
            ("sandbox_fork", json!({"sandbox_id": id})),
            ("sandbox_resume", json!({"sandbox_id": id})),
            ("sandbox_info", json!({"sandbox_id": id})),
            ("sandbox_list", json!({})),
        ] {
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": tool, "arguments": arguments}});
            answers.push((
                tool.to_owned(),
                call(&app, &key, "POST", "/mcp", &message).await,
            ));
        }
        // Otherwise nothing would be tested.
        assert!(seen >= 5, "{scopes:?}: {answers:?}");
        let credentials = credentials(&app).await;
        assert!(credentials.len() > 2);
        for (path, answer) in &answers {
            for credential in &credentials {
                let is_leaked = answer.text.contains(credential.as_str());
                assert!(!is_leaked, "{scopes:?} {path}: {}", answer.text);
            }
        }
    }
}

#[tokio::test]
async fn a_key_with_use_gets_the_tokens_the_sdk_needs() {
    let app = TestApp::new().await;
    let auth = app.app.auth();
    let scopes = [Scope::Use, Scope::Manage];
    let key = auth.create_key("alice", "both", &scopes, None).await;
    let key = key.unwrap().secret;
    let path = "/e2b/v2/sandboxes";
    let made = call(&app, &key, "POST", path, &body_of(path)).await.json();
    assert!(made["envdAccessToken"].is_string(), "{made}");
    assert!(made["trafficAccessToken"].is_string(), "{made}");
}
