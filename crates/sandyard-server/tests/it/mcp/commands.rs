//! Commands over the real engine: their progress, their end, and what becomes of them when nobody waits any more.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::messages_in;
use crate::live::{Server, TIMEOUT};

/// Posts to a real server; its answer is read by the caller.
fn ask(
    server: &Server,
    session: &str,
    id: u64,
    name: &str,
    arguments: Value,
    meta: Value,
) -> reqwest::RequestBuilder {
    let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments, "_meta": meta}});
    server
        .post("/mcp")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-session-id", session)
        .json(&body)
}

async fn events(request: reqwest::RequestBuilder) -> Vec<Value> {
    messages_in(&request.send().await.unwrap().text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_tell_their_progress_and_their_end() {
    let server = Server::start().await;
    let id = server.create().await;
    let run = |command: &str, more: Value| {
        let mut arguments = json!({"sandbox_id": id, "command": command});
        arguments
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        ask(
            &server,
            "s",
            1,
            "run_command",
            arguments,
            json!({"progressToken": "p"}),
        )
    };
    let mut response = run(
        "echo begun; until [ -e go ]; do sleep 0.05; done; echo out; echo err >&2; exit 3",
        json!({"cwd": "/tmp", "env": {"A": "b"}}),
    )
    .send()
    .await
    .unwrap();
    // The command continues after enough progress messages.
    let mut text = String::new();
    let is_reported = |text: &str| {
        let messages = messages_in(text);
        messages.len() >= 2 && messages.iter().any(|it| it.to_string().contains("begun"))
    };
    while !is_reported(&text) {
        let piece = response.chunk().await.unwrap().expect("more");
        text.push_str(std::str::from_utf8(&piece).unwrap());
    }
    server.run(&id, "touch /tmp/go").await;
    text.push_str(&response.text().await.unwrap());
    let messages = messages_in(&text);
    let (result, progress) = messages.split_last().unwrap();
    let report = &result["result"]["structuredContent"];
    assert_eq!(
        (&report["exit_code"], &report["stdout"], &report["stderr"]),
        (&json!(3), &json!("begun\nout\n"), &json!("err\n"))
    );
    assert_eq!(result["result"]["isError"], false);
    assert!(progress.len() >= 2, "{messages:?}");
    assert!(
        progress
            .iter()
            .all(|it| it["params"]["progressToken"] == "p")
    );
    assert!(
        progress
            .iter()
            .any(|it| it["params"]["message"].as_str().unwrap().contains("begun")),
        "{messages:?}"
    );

    let messages = events(run(
        "head -c 50000000 /dev/zero | tr '\\0' x; echo end",
        json!({}),
    ))
    .await;
    let report = &messages.last().unwrap()["result"]["structuredContent"];
    let stdout = report["stdout"].as_str().unwrap();
    assert!(report["truncated"] == true && stdout.len() < 60_000 && stdout.ends_with("xend\n"));

    // A busy machine may not even have begun with it in the shorter times.
    let mut timeouts = [3, 20, 90].into_iter();
    let messages = loop {
        let timeout = timeouts.next().expect("it never says anything");
        let messages = events(run("echo kept; sleep 1000", json!({"timeout": timeout}))).await;
        if messages.last().unwrap()["result"]["structuredContent"]["stdout"] != "" {
            break messages;
        }
    };
    let result = &messages.last().unwrap()["result"];
    assert_eq!(
        (
            &result["isError"],
            &result["structuredContent"]["timed_out"]
        ),
        (&json!(true), &json!(true))
    );
    assert_eq!(result["structuredContent"]["stdout"], "kept\n");

    let messages = events(run("sleep 77", json!({"background": true}))).await;
    assert!(messages.last().unwrap()["result"]["structuredContent"]["exit_code"].is_null());
    server.until(&id, "pgrep -xc sleep", "1").await;
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_cancelled_or_left_takes_its_command_along() {
    let server = Server::start().await;
    let id = server.create().await;
    let arguments = json!({"sandbox_id": id, "command": "sleep 1000"});
    // By a notice beside it.
    let call = tokio::spawn(
        ask(
            &server,
            "mine",
            7,
            "run_command",
            arguments.clone(),
            json!({}),
        )
        .send(),
    );
    server.until(&id, "pgrep -xc sleep", "1").await;
    let cancel = |session: &str, id: u64| {
        let body = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        let request = server
            .post("/mcp")
            .header("mcp-session-id", session.to_owned());
        request
            .header("accept", "application/json, text/event-stream")
            .json(&body)
            .send()
    };
    for (session, number) in [("other", 7), ("mine", 8)] {
        assert_eq!(cancel(session, number).await.unwrap().status(), 202);
    }
    assert_eq!(server.run(&id, "pgrep -xc sleep").await.trim(), "1");
    assert_eq!(cancel("mine", 7).await.unwrap().status(), 202);
    server.until(&id, "pgrep -xc sleep || true", "0").await;
    call.await.unwrap().unwrap().text().await.unwrap();
    // By hanging up.
    let call = tokio::spawn(
        ask(
            &server,
            "mine",
            9,
            "run_command",
            arguments,
            json!({"progressToken": 1}),
        )
        .send(),
    );
    server.until(&id, "pgrep -xc sleep", "1").await;
    drop(call.await.unwrap().unwrap());
    let started_at = Instant::now();
    server.until(&id, "pgrep -xc sleep || true", "0").await;
    assert!(started_at.elapsed() < TIMEOUT.max(Duration::from_secs(1)));
    server.finish().await;
}
