//! Volumes in the native dialect and in E2B's.

use axum::body::Body;
use axum::http::Request;
use sandyard_provider::Verb;
use serde_json::{Value, json};

use crate::app::Actor::{Admin, Alice, Anonymous, Bob};
use crate::app::{Answer, At, TestApp};

const E2B: &str = "/e2b/volumes";

/// Makes a volume as E2B's clients do.
async fn make(app: &TestApp, name: &str) -> Value {
    app.post(Alice, E2B, json!({ "name": name }))
        .await
        .refused(201)
}

/// Asks for contents with a volume's token.
async fn with_token(app: &TestApp, token: &str, method: &str, path: &str) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "yard.test")
        .header("authorization", format!("Bearer {token}"))
        .body(Body::empty())
        .unwrap();
    app.send(At::Network, request).await
}

#[tokio::test]
async fn a_volume_is_made_listed_shown_and_removed() {
    let app = TestApp::new().await;
    let made = app
        .post(Alice, "/volumes", json!({"name": "data"}))
        .await
        .ok();
    assert_eq!(
        (&made["name"], &made["owner"]),
        (&json!("data"), &json!("alice"))
    );
    assert_eq!(made["size_bytes"], 1_u64 << 30);
    assert!(made.get("token").is_none());
    let id = made["volume_id"].as_str().unwrap();
    let listed = app.get(Alice, "/volumes").await.ok();
    assert_eq!(listed, json!({"volumes": [made]}));
    assert_eq!(app.get(Bob, "/volumes").await.ok(), json!({"volumes": []}));
    let path = "/volumes?user_id=alice";
    assert_eq!(app.get(Bob, path).await.ok(), json!({"volumes": []}));
    assert_eq!(app.get(Admin, path).await.ok(), listed);
    for name in ["data", id] {
        assert_eq!(app.get(Alice, &format!("/volumes/{name}")).await.ok(), made);
        app.get(Bob, &format!("/volumes/{name}")).await.refused(404);
        let path = format!("/volumes/{name}");
        app.ask(Bob, "DELETE", &path, None).await.refused(404);
    }
    let second = app.post(Alice, "/volumes", json!({"name": "data"})).await;
    assert_eq!(second.refused(409)["field"], "name");
    let invalid = app.post(Alice, "/volumes", json!({"name": "a b"})).await;
    assert_eq!(invalid.refused(422)["field"], "name");
    // Who gets the user's name next would get its volumes.
    let refusal = app.ask(Admin, "DELETE", "/users/alice", None).await;
    assert!(
        refusal.refused(409)["detail"]
            .as_str()
            .unwrap()
            .contains("volumes")
    );
    app.ask(Alice, "DELETE", "/volumes/data", None).await.ok();
    assert!(app.provider.volumes().is_empty());
}

#[tokio::test]
async fn a_sandbox_is_made_with_volumes() {
    let app = TestApp::new().await;
    app.post(Alice, "/volumes", json!({"name": "data"}))
        .await
        .ok();
    let request = json!({"volumes": {"/mnt/data": "data"}});
    let made = app.post(Alice, "/sandboxes/create", request.clone()).await;
    let id = made.ok()["sandbox_id"].as_str().unwrap().to_owned();
    let info = app.get(Alice, &format!("/sandboxes/{id}/info")).await.ok();
    assert_eq!(info["volumes"], json!({"/mnt/data": "data"}));
    let spec = app.provider.spec_of(&app.provider.instances()[0].id);
    assert_eq!(spec.unwrap().mounts[0].path, "/mnt/data");
    let refused = app.post(Bob, "/sandboxes/create", request).await;
    assert_eq!(refused.refused(422)["field"], "mounts");
    let invalid = json!({"volumes": {"mnt": "data"}});
    let refused = app.post(Alice, "/sandboxes/create", invalid).await;
    assert_eq!(refused.refused(422)["field"], "mounts");
    let refusal = app.ask(Alice, "DELETE", "/volumes/data", None).await;
    let detail = refusal.refused(409)["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains(&id), "{detail}");
    app.ask(Alice, "DELETE", &format!("/sandboxes/{id}"), None)
        .await
        .ok();
    app.ask(Alice, "DELETE", "/volumes/data", None).await.ok();
}

#[tokio::test]
async fn e2bs_clients_get_what_they_read() {
    let app = TestApp::new().await;
    assert_eq!(app.get(Alice, E2B).await.ok(), json!([]));
    let made = make(&app, "data").await;
    let id = made["volumeID"].as_str().unwrap();
    let expected = json!({"volumeID": id, "name": "data", "token": made["token"]});
    assert_eq!(made, expected, "a domain only where it leads here");
    let one = format!("{E2B}/{id}");
    assert_eq!(app.get(Alice, &one).await.ok(), made);
    let listed = app.get(Alice, E2B).await.ok();
    assert_eq!(listed, json!([{"volumeID": id, "name": "data"}]));
    assert_eq!(app.get(Bob, E2B).await.ok(), json!([]));
    for (method, status) in [("GET", 404), ("DELETE", 404)] {
        let refused = app.ask(Bob, method, &one, None).await.refused(status);
        assert_eq!(refused["code"], status);
        assert!(refused["message"].as_str().unwrap().contains("no volume"));
        app.ask(Anonymous, method, &one, None).await.refused(401);
    }
    let second = app.post(Alice, E2B, json!({"name": "data"})).await;
    assert_eq!(second.refused(409)["code"], 409);
    let invalid = app.post(Alice, E2B, json!({"name": "/"})).await;
    assert_eq!(invalid.refused(400)["code"], 400);
    let response = app.ask(Alice, "DELETE", &one, None).await;
    assert_eq!(
        (response.status.as_u16(), response.text.as_str()),
        (204, "")
    );
    app.ask(Alice, "DELETE", &one, None).await.refused(404);
}

#[tokio::test]
async fn a_token_opens_the_contents_of_its_volume_and_nothing_else() {
    let app = TestApp::new().await;
    let (one, other) = (make(&app, "one").await, make(&app, "other").await);
    let token = one["token"].as_str().unwrap();
    let path = |volume: &Value| {
        let id = volume["volumeID"].as_str().unwrap();
        format!("/e2b/volumecontent/{id}/path?path=/a")
    };
    let opened = || app.provider.count(Verb::OpenVolume);
    // The fake has no agent; what counts is that it is asked for.
    with_token(&app, token, "GET", &path(&one))
        .await
        .refused(400);
    assert_eq!(opened(), 1);
    with_token(&app, token, "GET", &path(&other))
        .await
        .refused(401);
    with_token(&app, "vol_x", "GET", &path(&one))
        .await
        .refused(401);
    for (method, path) in [
        ("GET", E2B),
        ("GET", "/volumes"),
        ("GET", "/sandboxes"),
        ("DELETE", "/volumes/one"),
    ] {
        with_token(&app, token, method, path).await.refused(401);
    }
    app.get(Anonymous, &path(&one)).await.refused(401);
    app.get(Bob, &path(&one)).await.refused(404);
    assert_eq!(opened(), 1);
    // Its owner needs no token.
    app.get(Alice, &path(&one)).await.refused(400);
    assert_eq!(opened(), 2);
    app.ask(Alice, "DELETE", "/volumes/one", None).await.ok();
    with_token(&app, token, "GET", &path(&one))
        .await
        .refused(404);
}
