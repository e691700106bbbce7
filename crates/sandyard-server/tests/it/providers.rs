//! Several providers at once, as each dialect shows them.

use axum::body::Body;
use axum::http::Request;
use sandyard_provider_fake::FakeProvider;
use sandyard_server::ServerSettings;
use sandyard_service::ServiceSettings;
use serde_json::{Value, json};

use crate::app::{Actor, At, TestApp};

use Actor::{Admin, Alice, Anonymous};

fn fake(name: &str) -> FakeProvider {
    FakeProvider::new().with_info(|info| {
        info.name = name.to_owned();
        info.location = format!("{name}:secret-place");
    })
}

/// `embedded`, the default, and `docker`, which has sandboxes and nothing else.
struct TestEnv {
    app: TestApp,
    docker: FakeProvider,
}

impl TestEnv {
    async fn new() -> Self {
        let docker = fake("docker").with_info(|info| info.capabilities = Default::default());
        Self::over(docker).await
    }

    async fn over(docker: FakeProvider) -> Self {
        let service = ServiceSettings {
            fallback: vec!["docker".to_owned()],
            ..ServiceSettings::default()
        };
        let providers = vec![fake("embedded"), docker.clone()];
        let app = TestApp::with_several(providers, service, ServerSettings::default()).await;
        Self { app, docker }
    }

    /// Lets the server notice who can be reached.
    async fn notice(&self) {
        for _ in 0..2 {
            self.app.app.service().check_providers().await;
        }
    }

    async fn info(&self, created: &Value) -> Value {
        let id = created["sandbox_id"].as_str().unwrap();
        let path = format!("/sandboxes/{id}/info");
        self.app.get(Alice, &path).await.ok()
    }
}

#[tokio::test]
async fn every_dialect_chooses_a_provider() {
    let env = TestEnv::new().await;
    let app = &env.app;
    let native = json!({"provider": "docker"});
    let made = app.post(Alice, "/sandboxes/create", native.clone()).await;
    let info = env.info(&made.ok()).await;
    assert_eq!(info["provider"], "docker");
    assert_eq!(info["capabilities"]["pause"], false);
    let wrapped = app
        .post(Alice, "/api/v1/agent/sandboxes/create", native)
        .await;
    let info = env.info(&wrapped.ok()["data"]).await;
    assert_eq!(info["provider"], "docker");
    let body = json!({"project_name": "p", "provider": "docker", "image": "base"});
    // A folder of the host is for admins alone.
    for (who, project) in [(Alice, None), (Admin, Some("p"))] {
        let made = app.post(who, "/api/sandboxes/", body.clone()).await.ok();
        assert_eq!(
            (&made["provider"], &made["image"]),
            (&json!("docker"), &json!("base"))
        );
        let spec = env.docker.spec_of(made["container_id"].as_str().unwrap());
        assert_eq!(spec.unwrap().project.as_deref(), project);
    }
    let made = app
        .post(
            Alice,
            "/e2b/v2/sandboxes",
            json!({"templateID": "docker/base"}),
        )
        .await;
    assert_eq!(made.status, 201, "{made:?}");
    let made = made.json();
    assert_eq!(
        (&made["templateID"], &made["alias"]),
        (&json!("docker/base"), &json!("docker/base"))
    );
    assert_eq!(env.docker.instances().len(), 5);
    // A team says nothing, as before.
    let made = app
        .post(
            Alice,
            "/e2b/v2/sandboxes",
            json!({"templateID": "team/base"}),
        )
        .await;
    assert_eq!(made.json()["templateID"], "base");
    assert_eq!(app.provider.instances().len(), 1);
}

#[tokio::test]
async fn a_provider_that_is_not_there_is_refused_by_name() {
    let env = TestEnv::new().await;
    for (path, mut body) in [
        ("/sandboxes/create", json!({})),
        ("/api/sandboxes/", json!({"project_name": "p"})),
    ] {
        for name in ["kubernetes", "", "Docker", "a b"] {
            body["provider"] = name.into();
            let refused = env.app.post(Alice, path, body.clone()).await;
            let refused = refused.refused(422);
            assert!(refused["detail"].as_str().unwrap().contains("provider"));
        }
    }
}

#[tokio::test]
async fn what_a_provider_cannot_do_is_a_clear_refusal_in_e2bs_words() {
    let env = TestEnv::new().await;
    let app = &env.app;
    let made = app
        .post(
            Alice,
            "/e2b/v2/sandboxes",
            json!({"templateID": "docker/base"}),
        )
        .await;
    let id = made.json()["sandboxID"].as_str().unwrap().to_owned();
    for verb in ["pause", "snapshots"] {
        let path = format!("/e2b/sandboxes/{id}/{verb}");
        let refused = app.post(Alice, &path, json!({})).await;
        let refused = refused.refused(400);
        assert!(
            refused["message"].as_str().unwrap().contains("`docker`"),
            "{verb}: {refused}"
        );
    }
    // There each copy has an answer of its own.
    let path = format!("/e2b/sandboxes/{id}/fork");
    let forks = app.post(Alice, &path, json!({})).await.json();
    assert_eq!(forks[0]["error"]["code"], 400, "{forks}");
    // Of what is not kept the moment is told.
    let metrics = app
        .get(Alice, &format!("/e2b/sandboxes/{id}/metrics"))
        .await;
    let metrics = metrics.ok();
    assert_eq!(metrics.as_array().unwrap().len(), 1, "{metrics}");
    assert_eq!(metrics[0]["memUsed"], 1 << 20);
    let long_ago = app
        .get(Alice, &format!("/e2b/sandboxes/{id}/metrics?start=1&end=2"))
        .await;
    assert_eq!(long_ago.ok(), json!([]));
    let path = format!("/sandboxes/{id}/metrics/history");
    let refused = app.get(Alice, &path).await.refused(422);
    assert_eq!(refused["code"], "unsupported");
}

#[tokio::test]
async fn health_tells_of_every_provider_and_of_no_secrets() {
    let env = TestEnv::new().await;
    let app = &env.app;
    env.notice().await;
    let health = app.get(Anonymous, "/health").await.ok();
    assert_eq!(health["status"], "healthy");
    assert_eq!(health["provider"], "embedded");
    let names: Vec<_> = health["providers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].clone(), one["default"].clone()))
        .collect();
    assert_eq!(
        names,
        [
            (json!("embedded"), json!(true)),
            (json!("docker"), json!(false))
        ]
    );
    env.docker.set_reachable(false);
    env.notice().await;
    let answer = app.get(Anonymous, "/health").await;
    let health = answer.ok();
    assert_eq!(health["status"], "degraded", "it still does its work");
    let docker = &health["providers"][1];
    assert_eq!(docker["status"], "unreachable");
    assert!(docker["since"].is_string());
    assert!(!answer.text.contains("secret-place"), "{}", answer.text);
    assert!(docker.get("reason").is_none());
    let info = app.get(Alice, "/info").await;
    assert!(!info.text.contains("secret-place"), "{}", info.text);
    assert_eq!(info.ok()["providers"][1]["reason"], Value::Null);
    let info = app.get(Admin, "/info").await.ok();
    assert!(info["providers"][1]["reason"].is_string());
    assert_eq!(info["providers"][1]["location"], "docker:secret-place");
}

#[tokio::test]
async fn metrics_count_by_provider() {
    let env = TestEnv::new().await;
    let app = &env.app;
    let body = json!({"provider": "docker"});
    app.post(Alice, "/sandboxes/create", body).await.ok();
    let text = app.get(Admin, "/metrics").await.text;
    for line in [
        "sandyard_provider_up{provider=\"docker\"} 1",
        "sandyard_provider_calls_in_progress{provider=\"docker\"} 0",
        "sandyard_provider_sandboxes{provider=\"docker\",status=\"running\"}",
        "sandyard_provider_sandboxes{provider=\"embedded\",status=\"running\"}",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[tokio::test]
async fn templates_of_all_providers_are_listed_imported_and_removed() {
    let env = TestEnv::over(fake("docker")).await;
    let app = &env.app;
    let import = |path: &str| {
        let request = Request::builder().method("PUT").uri(path);
        let request = request.header("host", "yard.test");
        let request = request.header("x-api-key", app.key(Admin).unwrap());
        request.body(Body::from("tar")).unwrap()
    };
    let made = import("/templates/python?provider=docker");
    let made = app.send(At::Network, made).await.ok();
    assert_eq!(made["provider"], "docker");
    let refused = import("/templates/python?provider=nobody");
    app.send(At::Network, refused).await.refused(422);
    let listed = async || {
        let listed = app.get(Alice, "/templates").await.ok();
        let names: Vec<String> = listed["templates"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| format!("{}/{}", one["provider"], one["name"]).replace('"', ""))
            .collect();
        (names, listed["warnings"].clone())
    };
    let (names, warnings) = listed().await;
    assert_eq!(names, ["embedded/base", "docker/base", "docker/python"]);
    assert_eq!(warnings, json!([]));
    let e2b = app.get(Alice, "/e2b/templates").await.ok();
    let ids: Vec<_> = e2b
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["templateID"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["base", "docker/base", "docker/python"]);
    env.docker.set_reachable(false);
    let (names, warnings) = listed().await;
    assert_eq!(names, ["embedded/base"]);
    assert_eq!(warnings[0]["provider"], "docker");
    env.docker.set_reachable(true);
    for status in [200, 404] {
        let path = "/templates/python?provider=docker";
        let removed = app.ask(Admin, "DELETE", path, None).await;
        assert_eq!(removed.status, status, "{removed:?}");
    }
}
