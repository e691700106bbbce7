//! What every request goes through: ids, slashes, methods, sizes, rates, open listeners.

use axum::body::Body;
use axum::http::Request;
use futures_util::future::join_all;
use sandyard_provider_fake::FakeProvider;
use sandyard_server::{AuthMode, ServerSettings};
use serde_json::json;

use crate::app::{Actor, At, TestApp};

use Actor::{Alice, Anonymous};

fn local(path: &str, headers: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::get(path).header("host", "localhost:8100");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::empty()).unwrap()
}

#[tokio::test]
async fn every_route_is_there_with_and_without_a_slash() {
    let app = TestApp::new().await;
    for path in [
        "/sandboxes",
        "/sandboxes/",
        "/api/sandboxes",
        "/api/sandboxes/",
        "/sandboxes/status/",
    ] {
        app.get(Alice, path).await.ok();
    }
}

#[tokio::test]
async fn request_ids_are_echoed_generated_or_refused() {
    let app = TestApp::new().await;
    let ask = async |id: Option<&str>| {
        let mut request = Request::get("/health");
        if let Some(id) = id {
            request = request.header("x-request-id", id);
        }
        app.send(At::Network, request.body(Body::empty()).unwrap())
            .await
    };
    assert_eq!(
        ask(Some("my-id.7_x")).await.headers["x-request-id"],
        "my-id.7_x"
    );
    assert_eq!(ask(None).await.headers["x-request-id"].len(), 36);
    for id in ["a b", "", "x\u{e9}", &"a".repeat(129)] {
        let answer = ask(Some(id)).await;
        assert_eq!(answer.refused(400)["code"], "bad_request");
        assert_eq!(answer.headers["x-request-id"].len(), 36);
    }
}

#[tokio::test]
async fn what_is_not_there_and_what_cannot_be_done_are_json() {
    let app = TestApp::new().await;
    assert_eq!(
        app.get(Anonymous, "/nosuch").await.refused(404)["code"],
        "not_found"
    );
    let answer = app.ask(Anonymous, "PUT", "/sandboxes/create", None).await;
    assert_eq!(answer.refused(405)["code"], "method_not_allowed");
    assert_eq!(answer.headers["allow"], "POST");
    let answer = app.ask(Anonymous, "PUT", "/sandboxes/x", None).await;
    answer.refused(405);
    assert!(answer.headers["allow"].to_str().unwrap().contains("DELETE"));
}

#[tokio::test]
async fn bodies_are_judged_by_form_and_size() {
    let settings = ServerSettings {
        max_json_bytes: 1000,
        ..ServerSettings::default()
    };
    let app = TestApp::with(FakeProvider::new(), settings).await;
    let post = |kind: &str, text: String| {
        let mut request = app.request(Alice, "POST", "/sandboxes/create", None);
        request
            .headers_mut()
            .insert("content-type", kind.parse().unwrap());
        *request.body_mut() = Body::from(text);
        request
    };
    for (kind, text, status) in [
        ("application/json", "{".to_owned(), 400),
        ("application/json", "[]".to_owned(), 422),
        ("application/json", "null".to_owned(), 422),
        ("text/plain", "{}".to_owned(), 422),
        (
            "application/json",
            format!("{{\"user_id\": \"{}\"}}", "x".repeat(2000)),
            413,
        ),
    ] {
        app.send(At::Network, post(kind, text))
            .await
            .refused(status);
    }
    app.send(
        At::Network,
        post("application/json; charset=utf-8", "{}".to_owned()),
    )
    .await
    .ok();
}

#[tokio::test]
async fn only_files_are_long_in_json() {
    let app = TestApp::new().await;
    let id = app.sandbox(Alice).await;
    let long = |len: usize| json!({"sandbox_id": id, "path": "/tmp/x", "content": "x".repeat(len)});
    let login = "/api/v1/auth/login";
    app.post(Anonymous, login, long(17 << 10))
        .await
        .refused(413);
    let folder = "/sandboxes/create-directory";
    app.post(Alice, folder, long(2 << 20)).await.refused(413);
    for path in ["/sandboxes/write-file", "/sandboxes/write-file/"] {
        let answer = app.post(Alice, path, long(2 << 20)).await;
        assert_ne!(answer.status, 413, "{path}");
    }
}

#[tokio::test]
async fn too_many_requests_are_refused_with_retry_after() {
    let settings = ServerSettings {
        rate_limit: 1,
        ..ServerSettings::default()
    };
    let app = TestApp::with(FakeProvider::new(), settings).await;
    // At once: one after the other may take a second each on a busy machine.
    let answers = join_all((0..50).map(|_| app.get(Alice, "/sandboxes"))).await;
    let mut refused = answers.into_iter().filter(|answer| answer.status == 429);
    let refused = refused
        .next()
        .expect("fifty at once are more than one a second");
    assert_eq!(refused.json()["code"], "rate_limited");
    assert!(refused.headers.contains_key("retry-after"));
    app.get(Actor::Bob, "/sandboxes").await.ok();
}

#[tokio::test]
async fn more_requests_at_once_than_there_are_places_are_refused() {
    let settings = ServerSettings {
        max_requests: 0,
        ..ServerSettings::default()
    };
    let app = TestApp::with(FakeProvider::new(), settings).await;
    let answer = app.get(Alice, "/sandboxes").await;
    assert_eq!(answer.refused(503)["code"], "unavailable");
    assert!(answer.headers.contains_key("retry-after"));
    app.get(Anonymous, "/health").await.ok();
}

#[tokio::test]
async fn an_open_listener_serves_programs_of_this_host_and_no_web_page() {
    let app = TestApp::new().await;
    app.send(At::Loopback, local("/sandboxes", &[])).await.ok();
    for header in [
        ("host", "evil.example"),
        ("origin", "null"),
        ("origin", "http://evil.example"),
        ("sec-fetch-site", "cross-site"),
    ] {
        let request = if header.0 == "host" {
            Request::get("/sandboxes")
                .header("host", header.1)
                .body(Body::empty())
                .unwrap()
        } else {
            local("/sandboxes", &[header])
        };
        let answer = app.send(At::Loopback, request).await;
        assert_eq!(answer.refused(403)["code"], "forbidden", "{header:?}");
        assert!(!answer.headers.contains_key("access-control-allow-origin"));
    }
    app.send(
        At::Loopback,
        local("/sandboxes", &[("x-forwarded-for", "1.2.3.4")]),
    )
    .await
    .refused(401);
    // Credentials that are not good are not good here either.
    for header in [
        ("authorization", "Bearer x"),
        ("x-api-key", "e2b_0"),
        ("authorization", "Basic eA=="),
    ] {
        app.send(At::Loopback, local("/sandboxes", &[header]))
            .await
            .refused(401);
    }
    // And good ones count for what they are.
    let key = app.key(Alice).unwrap().to_owned();
    app.send(At::Loopback, local("/nodes", &[("x-api-key", &key)]))
        .await
        .refused(403);
}

#[tokio::test]
async fn credentials_may_be_required_on_loopback() {
    let settings = ServerSettings {
        auth_mode: AuthMode::Required,
        ..ServerSettings::default()
    };
    let app = TestApp::with(FakeProvider::new(), settings).await;
    app.send(At::Loopback, local("/sandboxes", &[]))
        .await
        .refused(401);
    app.send(At::Loopback, local("/health", &[])).await.ok();
}

#[tokio::test]
async fn health_tells_how_the_server_is() {
    let app = TestApp::new().await;
    app.sandbox(Alice).await;
    let health = app.get(Anonymous, "/health").await.ok();
    assert_eq!(
        (&health["status"], &health["store"]),
        (&json!("healthy"), &json!("sqlite"))
    );
    assert_eq!(
        (&health["provider"], &health["timers"]),
        (&json!("fake"), &json!("database"))
    );
    assert_eq!(health["sandboxes"]["running"], 1);
    app.app.set_ready(false);
    assert_eq!(
        app.get(Anonymous, "/health").await.refused(503)["status"],
        "stopping"
    );
}

#[tokio::test]
async fn metrics_are_for_admins() {
    let app = TestApp::new().await;
    app.sandbox(Alice).await;
    app.get(Alice, "/metrics").await.refused(403);
    let answer = app.get(Actor::Admin, "/metrics").await;
    assert_eq!(answer.status, 200);
    for name in [
        "sandyard_sandboxes{status=\"running\"}",
        "sandyard_http_requests_total{",
        "sandyard_http_request_duration_seconds_bucket{",
    ] {
        assert!(answer.text.contains(name), "{name}: {}", answer.text);
    }
}
