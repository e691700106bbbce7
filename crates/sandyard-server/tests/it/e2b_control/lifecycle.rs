//! A sandbox from its create to its end.

use axum::body::Body;
use axum::http::Request;
use sandyard_core::Scope;
use serde_json::{Value, json};

use super::{ALICE, has, id, life_s};
use crate::app::{At, TestApp};

#[tokio::test]
async fn a_new_sandbox_has_what_the_sdks_insist_on() {
    let app = TestApp::new().await;
    let made = app
        .make(ALICE, json!({"metadata": {"a": "b"}, "envVars": {"X": "y"}, "timeout": 60, "mcp": null, "odd": 1}))
        .await;
    has(
        &made,
        &[
            "templateID",
            "sandboxID",
            "clientID",
            "envdVersion",
            "envdAccessToken",
            "domain",
            "alias",
        ],
    );
    assert_eq!(made["alias"], "base");
    assert_eq!(made["trafficAccessToken"], Value::Null);
    let detail = app.detail(id(&made)).await;
    has(
        &detail,
        &[
            "templateID",
            "sandboxID",
            "clientID",
            "envdVersion",
            "startedAt",
            "endAt",
            "cpuCount",
            "memoryMB",
            "diskSizeMB",
            "state",
            "metadata",
            "envdAccessToken",
            "network",
            "lifecycle",
            "volumeMounts",
        ],
    );
    assert_eq!(detail["state"], "running");
    assert_eq!(detail["metadata"], json!({"a": "b"}));
    assert_eq!(
        detail["lifecycle"],
        json!({"autoResume": false, "onTimeout": "kill"})
    );
    assert_eq!(detail["network"], json!({"allowPublicTraffic": true}));
    assert_eq!(detail["envdAccessToken"], made["envdAccessToken"]);
    assert_eq!(life_s(&detail), 60);
}

#[tokio::test]
async fn generations_differ_in_how_long_a_sandbox_lives() {
    let app = TestApp::new().await;
    for (path, seconds) in [("/v2/sandboxes", 300), ("/sandboxes", 15)] {
        let body = json!({"templateID": "base", "secure": true});
        let made = app.e2b(ALICE, "POST", path, body).await.done(201);
        assert_eq!(life_s(&app.detail(id(&made)).await), seconds, "{path}");
    }
}

#[tokio::test]
async fn lifecycles_are_what_was_asked_for() {
    let app = TestApp::new().await;
    for (asked, auto_resume, on_timeout) in [
        (json!({"autoPause": true}), false, "pause"),
        (
            json!({"autoPause": true, "autoResume": {"enabled": true}}),
            true,
            "pause",
        ),
        (
            json!({"autoPause": true, "autoPauseMemory": false}),
            false,
            "pause",
        ),
        (json!({"autoPause": false}), false, "kill"),
    ] {
        let made = app.make(ALICE, asked).await;
        let lifecycle = &app.detail(id(&made)).await["lifecycle"];
        assert_eq!(
            *lifecycle,
            json!({"autoResume": auto_resume, "onTimeout": on_timeout})
        );
    }
    let both =
        json!({"templateID": "base", "autoPauseMemory": false, "autoResume": {"enabled": true}});
    app.e2b(ALICE, "POST", "/v2/sandboxes", both)
        .await
        .failed(400);
}

#[tokio::test]
async fn pausing_and_connecting_have_their_own_status_codes() {
    let app = TestApp::new().await;
    let made = app.make(ALICE, json!({})).await;
    let path = |verb: &str| format!("/sandboxes/{}/{verb}", id(&made));
    let connect = async |path: String, body| app.e2b(ALICE, "POST", &path, body).await;
    connect(path("connect"), json!({"timeout": 10}))
        .await
        .done(200);
    app.e2b(ALICE, "POST", &path("resume"), json!({}))
        .await
        .failed(409);
    for (pause, mode) in [
        (json!({}), "full"),
        (json!({"memory": false}), "filesystem"),
        (Value::Null, "full"),
    ] {
        app.e2b(ALICE, "POST", &path("pause"), pause)
            .await
            .done(204);
        app.e2b(ALICE, "POST", &path("pause"), json!({}))
            .await
            .failed(409);
        let detail = app.detail(id(&made)).await;
        assert_eq!(
            (&detail["state"], &detail["pauseMode"]),
            (&json!("paused"), &json!(mode))
        );
        // The oldest SDKs resume when they hear this.
        app.e2b(ALICE, "POST", &path("timeout"), json!({"timeout": 5}))
            .await
            .failed(404);
        let woken = connect(format!("/v2{}", path("connect")), json!({"memory": false}))
            .await
            .done(201);
        assert_eq!(woken["envdAccessToken"], made["envdAccessToken"]);
    }
    app.e2b(ALICE, "POST", &path("pause"), json!({}))
        .await
        .done(204);
    let resumed = json!({"timeout": 20, "autoPause": true});
    app.e2b(ALICE, "POST", &path("resume"), resumed)
        .await
        .done(201);
    let detail = app.detail(id(&made)).await;
    assert_eq!(detail["lifecycle"]["onTimeout"], "pause");
    assert_eq!(life_s(&detail), 20);
}

#[tokio::test]
async fn connecting_gives_time_and_takes_none() {
    let app = TestApp::new().await;
    let made = app.make(ALICE, json!({"timeout": 100})).await;
    let path = format!("/v2/sandboxes/{}/connect", id(&made));
    for (asked, is) in [(50, 100), (150, 150), (10, 150)] {
        app.e2b(ALICE, "POST", &path, json!({"timeout": asked}))
            .await
            .done(200);
        assert_eq!(life_s(&app.detail(id(&made)).await), is, "{asked}");
    }
    let refreshes = format!("/sandboxes/{}/refreshes", id(&made));
    for (asked, is) in [(Value::Null, 150), (json!({"duration": 200}), 200)] {
        app.e2b(ALICE, "POST", &refreshes, asked).await.done(204);
        assert_eq!(life_s(&app.detail(id(&made)).await), is);
    }
}

#[tokio::test]
async fn a_new_time_may_be_shorter_and_none_at_all_ends_it() {
    let app = TestApp::new().await;
    let made = app.make(ALICE, json!({"timeout": 100})).await;
    let path = format!("/sandboxes/{}/timeout", id(&made));
    let set = async |body: Value| app.e2b(ALICE, "POST", &path, body).await;
    set(json!({"timeout": 40})).await.done(204);
    assert_eq!(life_s(&app.detail(id(&made)).await), 40);
    for wrong in [
        json!({}),
        json!({"timeout": -1}),
        json!({"timeout": "x"}),
        json!({"timeout": 999_999_999}),
    ] {
        set(wrong).await.failed(400);
    }
    set(json!({"timeout": 0})).await.done(204);
    assert_eq!(life_s(&app.detail(id(&made)).await), 0);
}

#[tokio::test]
async fn a_killed_sandbox_is_not_found() {
    let app = TestApp::new().await;
    let made = app.make(ALICE, json!({})).await;
    let path = format!("/sandboxes/{}", id(&made));
    app.e2b(ALICE, "DELETE", &path, Value::Null).await.done(204);
    app.e2b(ALICE, "DELETE", &path, Value::Null)
        .await
        .failed(404);
    app.e2b(ALICE, "GET", &path, Value::Null).await.failed(404);
    for verb in [
        "pause",
        "connect",
        "resume",
        "fork",
        "snapshots",
        "refreshes",
    ] {
        let path = format!("{path}/{verb}");
        app.e2b(ALICE, "POST", &path, json!({})).await.failed(404);
    }
    assert!(app.ids("").await.is_empty());
}

#[tokio::test]
async fn old_clients_put_an_id_of_their_own_behind() {
    let app = TestApp::new().await;
    let made = app.make(ALICE, json!({})).await;
    let client = made["clientID"].as_str().unwrap();
    let path = format!("/sandboxes/{}-{client}", id(&made));
    let detail = app.e2b(ALICE, "GET", &path, Value::Null).await.done(200);
    assert_eq!(detail["sandboxID"], made["sandboxID"]);
    app.e2b(ALICE, "DELETE", &path, Value::Null).await.done(204);
}

#[tokio::test]
async fn repeating_a_create_with_its_key_gives_the_same_sandbox() {
    let app = TestApp::new().await;
    let make = async |timeout: u32| {
        let body = json!({"templateID": "base", "timeout": timeout});
        let mut request = app.request(ALICE, "POST", "/e2b/v2/sandboxes", Some(body));
        request
            .headers_mut()
            .insert("idempotency-key", "one-two-3".parse().unwrap());
        app.send(At::Network, request).await
    };
    let first = make(60).await.done(201);
    assert_eq!(make(60).await.done(201), first);
    make(61).await.failed(409);
    assert_eq!(app.ids("").await.len(), 1);
}

#[tokio::test]
async fn a_read_only_key_does_not_receive_the_agents_token() {
    let app = TestApp::new().await;
    let made = app.make(ALICE, json!({})).await;
    let path = format!("/sandboxes/{}", id(&made));
    let seen = app.e2b(ALICE, "GET", &path, Value::Null).await.done(200);
    assert_eq!(seen["envdAccessToken"], made["envdAccessToken"]);
    let auth = app.app.auth();
    let key = auth.create_key("alice", "looks on", &[Scope::Read], None);
    let request = Request::builder()
        .uri(format!("/e2b{path}"))
        .header("x-api-key", key.await.unwrap().secret)
        .body(Body::empty())
        .unwrap();
    let seen = app.send(At::Network, request).await.done(200);
    assert_eq!(seen["sandboxID"], made["sandboxID"]);
    assert_eq!(seen.get("envdAccessToken"), None);
}
