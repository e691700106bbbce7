//! The older transport, through the whole router.

use std::time::{Duration, Instant};

use axum::http::StatusCode;
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::super::settings::tests::TestEnv;
use crate::custom::testing::{notes, until};

/// The next event of a stream: its name and data.
async fn event(
    stream: &mut (impl StreamExt<Item = Result<axum::body::Bytes, axum::Error>> + Unpin),
) -> (String, String) {
    loop {
        let piece = stream.next().await.unwrap().unwrap();
        let text = String::from_utf8(piece.to_vec()).unwrap();
        let field = |name: &str| {
            text.lines()
                .find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
        };
        if let (Some(event), Some(data)) = (field("event:"), field("data:")) {
            return (event, data);
        }
    }
}

#[tokio::test]
async fn the_older_transport_answers_on_its_stream() {
    let env = TestEnv::new();
    env.with_small_server().await;
    let response = env
        .send_with("GET", "/sse", &[("x-forwarded-prefix", "/p/abc/6060")], "")
        .await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut stream = response.into_body().into_data_stream();
    let (name, endpoint) = event(&mut stream).await;
    assert_eq!(name, "endpoint");
    let endpoint = endpoint.strip_prefix("/p/abc/6060").unwrap().to_owned();
    assert!(endpoint.starts_with("/messages?session_id="));
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    assert_eq!(
        env.post(&endpoint, initialize).await.0,
        StatusCode::ACCEPTED
    );
    let (name, data) = event(&mut stream).await;
    let answer: Value = serde_json::from_str(&data).unwrap();
    assert_eq!((name.as_str(), &answer["id"]), ("message", &json!(1)));
    assert_eq!(answer["result"]["protocolVersion"], "2024-11-05");
    env.post(
        &endpoint,
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    )
    .await;
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "mcp_small_echo", "arguments": {"text": "hi"}}});
    env.post(&endpoint, call).await;
    let answer: Value = serde_json::from_str(&event(&mut stream).await.1).unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "hi", "{answer}");
    // Clients hear of new tools.
    let grow = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "mcp_small_grow"}});
    env.post(&endpoint, grow).await;
    event(&mut stream).await;
    let message: Value = serde_json::from_str(&event(&mut stream).await.1).unwrap();
    assert_eq!(message["method"], "notifications/tools/list_changed");
    // A stream that closes ends its work and its session.
    let slow = json!({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "mcp_small_slow"}});
    env.post(&endpoint, slow).await;
    let echo = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "mcp_small_echo"}});
    env.post(&endpoint, echo).await;
    event(&mut stream).await;
    drop(stream);
    until("the work is cancelled", || {
        notes(env.folder.path()).contains("cancelled")
    })
    .await;
    // The session goes when its work has ended, a moment later.
    let give_up = Instant::now() + Duration::from_secs(90);
    let ping = json!({"jsonrpc": "2.0", "id": 6, "method": "ping"});
    while env.post(&endpoint, ping.clone()).await.0 != StatusCode::NOT_FOUND {
        assert!(Instant::now() < give_up, "the session stays");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(
        env.post("/messages?session_id=x", json!({})).await.0,
        StatusCode::NOT_FOUND
    );
}
