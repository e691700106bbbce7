//! Finding sandboxes again, what they used and what they wrote; and that nobody finds another's.

use serde_json::{Value, json};

use super::{ALICE, has, id, ids};
use crate::app::{Actor, TestApp};

#[tokio::test]
async fn lists_come_in_pages_in_either_order() {
    let app = TestApp::new().await;
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(id(&app.make(ALICE, json!({})).await).to_owned());
        app.clock.advance_ms(10);
    }
    for order in ["desc", "asc"] {
        let (mut seen, mut token) = (Vec::new(), String::new());
        loop {
            let path = format!("/v2/sandboxes?limit=2&order={order}{token}");
            let answer = app.e2b(ALICE, "GET", &path, Value::Null).await;
            seen.extend(ids(&answer.done(200)));
            assert_eq!(answer.headers["x-total-running"], "5");
            match answer.headers.get("x-next-token") {
                Some(next) => token = format!("&nextToken={}", next.to_str().unwrap()),
                None => break,
            }
        }
        if order == "desc" {
            seen.reverse();
        }
        assert_eq!(seen, made, "{order}");
    }
    for query in [
        "limit=0",
        "limit=101",
        "order=x",
        "state=x",
        "nextToken=x",
        "startedAfter=x",
        "metadata=a%3D%25",
    ] {
        let path = format!("/v2/sandboxes?{query}");
        app.e2b(ALICE, "GET", &path, Value::Null).await.failed(400);
    }
}

#[tokio::test]
async fn lists_are_filtered() {
    let app = TestApp::new().await;
    let runs = app
        .make(ALICE, json!({"metadata": {"a": "b c", "n": "1"}}))
        .await;
    app.clock.advance_ms(5000);
    let paused = app.make(ALICE, json!({"metadata": {"a": "b c"}})).await;
    let stopped = app.make(ALICE, json!({})).await;
    for (view, body) in [(&paused, json!({})), (&stopped, json!({"memory": false}))] {
        let path = format!("/sandboxes/{}/pause", id(view));
        app.e2b(ALICE, "POST", &path, body).await.done(204);
    }
    app.make(Actor::Bob, json!({"metadata": {"a": "b c"}}))
        .await;
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    let of = |views: &[&Value]| sorted(views.iter().map(|view| id(view).to_owned()).collect());
    for (query, expected) in [
        ("", &[&runs, &paused, &stopped][..]),
        ("state=running", &[&runs]),
        ("state=paused", &[&paused, &stopped]),
        ("state=running%2Cpaused", &[&runs, &paused, &stopped]),
        ("metadata=a%3Db%252520c", &[&runs, &paused]),
        ("metadata=a%3Db%252520c%26n%3D1", &[&runs]),
        ("metadata=a%3Db", &[]),
        ("template=base", &[&runs, &paused, &stopped]),
        ("template=other", &[]),
        (
            "startedAfter=2026-01-01T00%3A00%3A05%2B00%3A00",
            &[&paused, &stopped],
        ),
        ("startedAfter=2027-01-01T00%3A00%3A05Z", &[]),
    ] {
        assert_eq!(sorted(app.ids(query).await), of(expected), "{query}");
    }
    let first = app
        .e2b(ALICE, "GET", "/sandboxes?metadata=n%3D1", Value::Null)
        .await;
    assert_eq!(ids(&first.done(200)), [id(&runs)]);
    let first = app
        .e2b(ALICE, "GET", "/sandboxes", Value::Null)
        .await
        .done(200);
    assert_eq!(ids(&first), [id(&runs)]);
    has(
        &first[0],
        &[
            "startedAt",
            "endAt",
            "cpuCount",
            "memoryMB",
            "diskSizeMB",
            "state",
            "envdVersion",
        ],
    );
    assert!(first[0].get("envdAccessToken").is_none());
}

#[tokio::test]
async fn users_see_only_their_own() {
    let app = TestApp::new().await;
    let made = app.make(ALICE, json!({})).await;
    let path = format!("/sandboxes/{}", id(&made));
    app.e2b(Actor::Bob, "GET", &path, Value::Null)
        .await
        .failed(404);
    app.e2b(Actor::Bob, "DELETE", &path, Value::Null)
        .await
        .failed(404);
    let snapshots = format!("{path}/snapshots");
    let created = app
        .e2b(ALICE, "POST", &snapshots, json!({"name": "mine"}))
        .await
        .done(201);
    let snapshot = created["snapshotID"].as_str().unwrap();
    for actor in [Actor::Bob, Actor::Admin] {
        let list = app
            .e2b(actor, "GET", "/snapshots", Value::Null)
            .await
            .done(200);
        assert_eq!(list, json!([]), "{actor:?}");
        let list = app.e2b(actor, "GET", "/v2/sandboxes", Value::Null).await;
        assert_eq!(list.headers["x-total-running"], "0");
        assert_eq!(list.done(200), json!([]), "{actor:?}");
    }
    for name in [snapshot, "mine", "alice/mine:default"] {
        let body = json!({"templateID": name});
        app.e2b(Actor::Bob, "POST", "/v2/sandboxes", body)
            .await
            .failed(404);
    }
    let many = format!("/sandboxes/metrics?sandbox_ids={}", id(&made));
    let many = app
        .e2b(Actor::Bob, "GET", &many, Value::Null)
        .await
        .done(200);
    assert_eq!(many, json!({"sandboxes": {}}));
    let path = format!("/templates/{}", snapshot.replace(':', "%3A"));
    app.e2b(Actor::Bob, "DELETE", &path, Value::Null)
        .await
        .failed(404);
    app.e2b(ALICE, "DELETE", &path, Value::Null).await.done(204);
}

#[tokio::test]
async fn metrics_and_logs_have_what_the_sdks_insist_on() {
    let app = TestApp::new().await;
    let made = app.make(ALICE, json!({})).await;
    let path = |tail: &str| format!("/sandboxes/{}/{tail}", id(&made));
    let points = app
        .e2b(ALICE, "GET", &path("metrics"), Value::Null)
        .await
        .done(200);
    for point in points.as_array().unwrap() {
        has(
            point,
            &[
                "timestamp",
                "timestampUnix",
                "cpuCount",
                "cpuUsedPct",
                "memUsed",
                "memTotal",
                "memCache",
                "diskUsed",
                "diskTotal",
            ],
        );
    }
    app.e2b(ALICE, "GET", &path("metrics?start=5&end=4"), Value::Null)
        .await
        .failed(400);
    app.e2b(ALICE, "GET", &path("metrics?start=x"), Value::Null)
        .await
        .failed(400);
    app.e2b(ALICE, "GET", "/sandboxes/metrics", Value::Null)
        .await
        .failed(400);
    let many = format!("/sandboxes/metrics?sandbox_ids=nothing,{}", id(&made));
    app.e2b(ALICE, "GET", &many, Value::Null).await.done(200);
    let logs = app
        .e2b(ALICE, "GET", &path("logs"), Value::Null)
        .await
        .done(200);
    has(&logs["logs"][0], &["timestamp", "line"]);
    let line = logs["logs"][0]["line"].as_str().expect("a text");
    let line = serde_json::from_str(line).expect("a JSON object");
    has(&line, &["level", "logger", "message"]);
    has(
        &logs["logEntries"][0],
        &["timestamp", "message", "level", "fields"],
    );
    let v2 = format!(
        "/v2{}",
        path("logs?direction=backward&limit=1&search=created")
    );
    let logs = app.e2b(ALICE, "GET", &v2, Value::Null).await.done(200);
    assert!(
        logs["logs"][0]["message"]
            .as_str()
            .unwrap()
            .starts_with("created by alice"),
        "{logs}"
    );
    let v2 = format!("/v2{}", path("logs?level=error"));
    let logs = app.e2b(ALICE, "GET", &v2, Value::Null).await.done(200);
    assert_eq!(logs, json!({"logs": []}));
}
