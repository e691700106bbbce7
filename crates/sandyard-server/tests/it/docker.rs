//! The Docker-style dialect over a provider in memory.

use serde_json::{Value, json};

use crate::app::{Actor, TestApp};

use Actor::{Alice, Bob};

#[tokio::test]
async fn a_container_is_made_and_shown_as_the_contract_says() {
    let app = TestApp::new().await;
    let body = json!({"project_name": "test", "memory_limit": "1g", "cpu_limit": "1.0", "ports": {"3000": 8080, "80/tcp": "81"}});
    let made = app.post(Alice, "/api/sandboxes/", body).await.ok();
    let id = made["sandbox_id"].as_str().unwrap();
    assert_eq!(
        made,
        json!({
            "sandbox_id": id,
            "container_id": made["container_id"],
            "project_name": "test",
            "image": "base",
            "provider": "fake",
            "status": "running",
            "created_at": "2026-01-01T00:00:02.000Z",
            "workspace_path": "/workspace",
            "ports": {"3000": "8080", "80/tcp": "81"},
            "resource_limits": {"memory": "1g", "cpu": "1.0"},
        })
    );
    assert!(made["container_id"].is_string());
    assert_eq!(
        app.get(Alice, &format!("/api/sandboxes/{id}")).await.ok(),
        made
    );
    for path in ["/api/sandboxes", "/api/sandboxes/?project_name=test"] {
        assert_eq!(app.get(Alice, path).await.ok(), json!([made]));
    }
    assert_eq!(
        app.get(Alice, "/api/sandboxes?project_name=other")
            .await
            .ok(),
        json!([])
    );
    assert_eq!(app.get(Bob, "/api/sandboxes").await.ok(), json!([]));
}

#[tokio::test]
async fn stopping_and_starting_may_be_repeated_and_stopped_ones_run_nothing() {
    let app = TestApp::new().await;
    let id = app.sandbox(Alice).await;
    let status =
        async || app.get(Alice, &format!("/api/sandboxes/{id}")).await.ok()["status"].clone();
    for verb in ["stop", "stop"] {
        let reply = app
            .ask(Alice, "POST", &format!("/api/sandboxes/{id}/{verb}"), None)
            .await
            .ok();
        assert_eq!(reply["success"], true);
    }
    assert_eq!(status().await, "stopped");
    let execute = json!({"command": ["true"]});
    let refused = app
        .post(
            Alice,
            &format!("/api/sandboxes/{id}/execute"),
            execute.clone(),
        )
        .await;
    assert!(
        refused.refused(400)["detail"]
            .as_str()
            .unwrap()
            .contains("stopped")
    );
    for verb in ["start", "start/"] {
        app.ask(Alice, "POST", &format!("/api/sandboxes/{id}/{verb}"), None)
            .await
            .ok();
    }
    assert_eq!(status().await, "running");
    app.ask(Alice, "POST", &format!("/sandboxes/{id}/pause"), None)
        .await
        .ok();
    assert_eq!(status().await, "stopped", "paused looks stopped here");
    app.post(Alice, "/api/sandboxes/nosuch/execute", execute)
        .await
        .refused(404);
    for verb in ["start", "stop"] {
        app.ask(
            Alice,
            "POST",
            &format!("/api/sandboxes/nosuch/{verb}"),
            None,
        )
        .await
        .refused(404);
    }
}

#[tokio::test]
async fn clean_up_removes_what_has_been_stopped_for_long() {
    let app = TestApp::new().await;
    let (old, young) = (app.sandbox(Alice).await, app.sandbox(Alice).await);
    app.ask(Alice, "POST", &format!("/api/sandboxes/{old}/stop"), None)
        .await
        .ok();
    app.clock.advance_ms(25 * 3_600_000);
    app.ask(Alice, "POST", &format!("/api/sandboxes/{young}/stop"), None)
        .await
        .ok();
    let reply = app
        .ask(Alice, "POST", "/api/sandboxes/cleanup?hours=24", None)
        .await
        .ok();
    assert_eq!(reply["removed"], json!([old]));
    app.get(Alice, &format!("/api/sandboxes/{old}"))
        .await
        .refused(404);
    for hours in ["-1", "x", "NaN", "1e9"] {
        app.ask(
            Alice,
            "POST",
            &format!("/api/sandboxes/cleanup?hours={hours}"),
            None,
        )
        .await
        .refused(422);
    }
}

#[tokio::test]
async fn deleting_takes_the_files_too_or_does_nothing() {
    let app = TestApp::new().await;
    let id = app.sandbox(Alice).await;
    let path = format!("/api/sandboxes/{id}");
    app.ask(
        Alice,
        "DELETE",
        &format!("{path}?remove_volume=false"),
        None,
    )
    .await
    .refused(409);
    app.get(Alice, &path).await.ok();
    let reply = app
        .ask(Alice, "DELETE", &format!("{path}?remove_volume=true"), None)
        .await
        .ok();
    assert_eq!(reply["success"], true);
    app.get(Alice, &path).await.refused(404);
}

#[tokio::test]
async fn malformed_requests_are_refused() {
    let app = TestApp::new().await;
    let cases: [Value; 6] = [
        json!({}),
        json!({"project_name": ""}),
        json!({"project_name": "p", "memory_limit": true}),
        json!({"project_name": "p", "ports": {"x": 1}}),
        json!({"project_name": "p", "ports": {"80": 0}}),
        json!({"project_name": "p", "cpu_limit": "many"}),
    ];
    for body in cases {
        app.post(Alice, "/api/sandboxes/", body).await.refused(422);
    }
    let id = app.sandbox(Alice).await;
    for body in [
        json!({"command": "ls"}),
        json!({"command": []}),
        json!({"command": ["a\u{0}"]}),
    ] {
        app.post(Alice, &format!("/api/sandboxes/{id}/execute"), body)
            .await
            .refused(422);
    }
}
