//! Snapshots, forks and templates.

use serde_json::{Value, json};

use super::{ALICE, has, id, life_s};
use crate::app::{Actor, TestApp};

#[tokio::test]
async fn snapshots_are_named_listed_used_and_removed() {
    let app = TestApp::new().await;
    let made = app.make(ALICE, json!({})).await;
    let path = format!("/sandboxes/{}/snapshots", id(&made));
    let mut snapshots = Vec::new();
    for body in [
        Value::Null,
        json!({}),
        json!({"name": "team/kept:default", "memory": false}),
    ] {
        snapshots.push(app.e2b(ALICE, "POST", &path, body).await.done(201));
        app.clock.advance_ms(10);
    }
    assert_eq!(snapshots[0]["names"], json!([]));
    assert_eq!(snapshots[2]["names"], json!(["alice/kept:default"]));
    let tagged = app
        .e2b(ALICE, "POST", &path, json!({"name": "kept:v2"}))
        .await
        .done(201);
    assert_eq!(tagged["names"], json!(["alice/kept:v2"]));
    app.make(ALICE, json!({"templateID": "alice/kept:v2"}))
        .await;
    app.e2b(ALICE, "DELETE", "/templates/kept%3Av2", Value::Null)
        .await
        .done(204);
    let list = async |query: &str| {
        let path = format!("/snapshots?{query}");
        app.e2b(ALICE, "GET", &path, Value::Null).await
    };
    let first = list("limit=2").await;
    assert_eq!(first.done(200), json!([snapshots[2], snapshots[1]]));
    let token = first.headers["x-next-token"].to_str().unwrap();
    let last = list(&format!("limit=2&nextToken={token}")).await;
    assert_eq!(last.done(200), json!([snapshots[0]]));
    assert!(last.headers.get("x-next-token").is_none());
    assert_eq!(list("name=kept").await.done(200), json!([snapshots[2]]));
    let of = format!("sandboxID={}", id(&made));
    assert_eq!(list(&of).await.done(200).as_array().unwrap().len(), 3);
    assert_eq!(list("sandboxID=other").await.done(200), json!([]));
    list("nextToken=x").await.failed(400);
    let template = snapshots[2]["snapshotID"].as_str().unwrap();
    for name in [template, "kept", "alice/kept:default", "kept:latest"] {
        let from = app.make(ALICE, json!({"templateID": name})).await;
        assert_eq!(
            format!("{}:default", from["templateID"].as_str().unwrap()),
            template
        );
    }
    let from = app.ids("template=kept").await;
    assert_eq!(from.len(), 4);
    assert_eq!(app.detail(&from[0]).await["alias"], "kept");
    let alias = app
        .e2b(ALICE, "GET", "/templates/aliases/kept", Value::Null)
        .await
        .done(200);
    assert_eq!(alias["public"], false);
    app.e2b(
        ALICE,
        "DELETE",
        "/templates/alice%2Fkept%3Adefault",
        Value::Null,
    )
    .await
    .done(204);
    app.e2b(ALICE, "DELETE", "/templates/kept", Value::Null)
        .await
        .failed(404);
    app.e2b(ALICE, "GET", "/templates/aliases/kept", Value::Null)
        .await
        .failed(404);
}

#[tokio::test]
async fn a_published_snapshot_is_public_until_it_is_unpublished() {
    let app = TestApp::new().await;
    let made = app.make(ALICE, json!({})).await;
    let path = format!("/sandboxes/{}/snapshots", id(&made));
    let body = json!({"name": "shared"});
    let snapshot = app.e2b(ALICE, "POST", &path, body).await.done(201);
    let template = snapshot["snapshotID"].as_str().unwrap();
    let publish = async |actor, name: &str, public: bool| {
        let path = format!("/v2/templates/{name}");
        app.e2b(actor, "PATCH", &path, json!({"public": public}))
            .await
    };
    let use_it = async || {
        let body = json!({"templateID": template});
        app.e2b(Actor::Bob, "POST", "/v2/sandboxes", body).await
    };
    let seen = async || {
        let path = format!("/templates/{template}");
        app.e2b(Actor::Bob, "GET", &path, Value::Null).await
    };
    use_it().await.failed(404);
    publish(Actor::Bob, template, true).await.failed(404);
    let published = publish(ALICE, "shared", true).await.done(200);
    assert_eq!(published, json!({"names": ["shared"]}));
    use_it().await.done(201);
    assert_eq!(seen().await.done(200)["public"], true);
    // Bob may use it, and no more.
    publish(Actor::Bob, template, false).await.failed(404);
    let path = format!("/templates/{template}");
    app.e2b(Actor::Bob, "DELETE", &path, Value::Null)
        .await
        .failed(404);
    publish(ALICE, template, false).await.done(200);
    use_it().await.failed(404);
    seen().await.failed(404);
    // What is not a snapshot is for everybody.
    publish(ALICE, "base", true).await.done(200);
    publish(ALICE, "base", false).await.failed(409);
}

#[tokio::test]
async fn forks_succeed_and_fail_one_by_one() {
    let app = TestApp::new().await;
    let made = app.make(ALICE, json!({"metadata": {"a": "b"}})).await;
    let path = format!("/sandboxes/{}/fork", id(&made));
    let forks = app
        .e2b(ALICE, "POST", &path, json!({"count": 6, "timeout": 30}))
        .await
        .done(201);
    let forks = forks.as_array().unwrap();
    assert_eq!(forks.len(), 6);
    for fork in forks {
        let detail = app.detail(id(&fork["sandbox"])).await;
        assert_eq!(detail["metadata"], json!({"a": "b"}));
        assert_eq!(life_s(&detail), 30);
    }
    for count in [json!(0), json!(21), json!("x")] {
        app.e2b(ALICE, "POST", &path, json!({ "count": count }))
            .await
            .failed(400);
    }
    app.allow(8).await;
    let forks = app
        .e2b(ALICE, "POST", &path, json!({"count": 3}))
        .await
        .done(201);
    let refused: Vec<_> = forks
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one.get("error").is_some())
        .collect();
    assert_eq!(refused.len(), 2);
    assert_eq!(refused[0]["error"]["code"], 429);
}

#[tokio::test]
async fn unknown_templates_say_what_to_do() {
    let app = TestApp::new().await;
    for (name, word) in [
        ("nowhere", "GET /templates"),
        ("code-interpreter-v1", "templates/code-interpreter"),
        ("mcp-gateway", "templates/mcp-gateway"),
        ("base:v7", "tags"),
    ] {
        let body = json!({ "templateID": name });
        let message = app
            .e2b(ALICE, "POST", "/v2/sandboxes", body)
            .await
            .failed(404);
        assert!(message.contains(word), "{message}");
    }
    app.make(ALICE, json!({"templateID": "e2b/base:latest"}))
        .await;
}

#[tokio::test]
async fn templates_can_be_looked_up() {
    let app = TestApp::new().await;
    for path in ["/templates", "/v2/templates", "/default-templates"] {
        let list = app.e2b(ALICE, "GET", path, Value::Null).await.done(200);
        let fields = [
            "templateID",
            "buildID",
            "cpuCount",
            "memoryMB",
            "diskSizeMB",
            "public",
            "aliases",
            "names",
            "createdAt",
            "updatedAt",
            "spawnCount",
            "buildCount",
            "envdVersion",
            "buildStatus",
        ];
        has(&list[0], &fields);
        assert!(list[0].get("createdBy").is_some() && list[0].get("lastSpawnedAt").is_some());
    }
    let base = app
        .e2b(ALICE, "GET", "/templates/base", Value::Null)
        .await
        .done(200);
    assert_eq!(
        (&base["builds"], &base["aliases"]),
        (&json!([]), &json!(["base"]))
    );
    let alias = app
        .e2b(ALICE, "GET", "/templates/aliases/e2b%2Fbase", Value::Null)
        .await
        .done(200);
    assert_eq!(
        alias,
        json!({"templateID": base["templateID"], "public": true})
    );
    app.e2b(ALICE, "GET", "/templates/nowhere", Value::Null)
        .await
        .failed(404);
    app.e2b(ALICE, "DELETE", "/templates/base", Value::Null)
        .await
        .failed(404);
}
