//! What is refused, and how that is said.

use futures_util::future::join_all;
use sandyard_provider::{ProviderErrorKind, Verb};
use sandyard_provider_fake::FakeProvider;
use sandyard_server::ServerSettings;
use serde_json::{Value, json};

use super::ALICE;
use crate::app::{Actor, At, TestApp};

#[tokio::test]
async fn what_there_is_not_is_refused_by_name() {
    let app = TestApp::new().await;
    let secret = json!({"a.org": [{"transform": {"headers": {"X": "${e2b.secrets.k}"}}}]});
    for (body, word) in [
        (
            json!({"iam": {"tokens": {"aws": {"audience": "a", "tokenType": "JWT-SVID"}}}}),
            "iam",
        ),
        (
            json!({"network": {"egressProxy": {"address": "p:1080"}}}),
            "egressProxy",
        ),
        (json!({"network": {"httpsPorts": [443]}}), "httpsPorts"),
        (json!({"network": {"rules": secret}}), "rules"),
        (json!({"network": {"allowOut": ["a b"]}}), "allow_out[0]"),
        (json!({"network": {"allowOut": "a.org"}}), "allowOut"),
        (json!({"timeout": "long"}), "timeout"),
        (json!({"timeout": 99_999_999}), "timeout"),
        (json!({"metadata": {"a": 1}}), "metadata"),
        (json!({"envVars": {"a=b": "c"}}), "envVars"),
        (json!({"templateID": 5}), "templateID"),
        (json!({"autoResume": true}), "autoResume"),
    ] {
        let mut body = body;
        if body.get("templateID").is_none() {
            body["templateID"] = "base".into();
        }
        for path in ["/sandboxes", "/v2/sandboxes"] {
            let message = app.e2b(ALICE, "POST", path, body.clone()).await.failed(400);
            assert!(message.contains(word), "{word}: {message}");
        }
    }
    let message = app
        .e2b(ALICE, "POST", "/sandboxes", json!({}))
        .await
        .failed(400);
    assert!(message.contains("templateID"), "{message}");
    app.make(
        ALICE,
        json!({"iam": {"tokens": {}}, "network": null, "metadata": null}),
    )
    .await;
    for (method, path) in [
        ("GET", "/secrets"),
        ("POST", "/secrets"),
        ("DELETE", "/secrets/a"),
    ] {
        let message = app.e2b(ALICE, method, path, json!({})).await.failed(400);
        assert!(message.contains("hosts"), "{message}");
    }
}

#[tokio::test]
async fn every_failure_has_the_same_shape() {
    let app = TestApp::new().await;
    app.e2b(Actor::Anonymous, "GET", "/v2/sandboxes", Value::Null)
        .await
        .failed(401);
    app.e2b(Actor::WrongKey, "GET", "/v2/sandboxes", Value::Null)
        .await
        .failed(401);
    app.e2b(ALICE, "GET", "/nowhere", Value::Null)
        .await
        .failed(404);
    app.e2b(ALICE, "GET", "/", Value::Null).await.failed(404);
    app.e2b(ALICE, "PATCH", "/v2/sandboxes", Value::Null)
        .await
        .failed(405);
    app.e2b(ALICE, "GET", "/sandboxes/%00", Value::Null)
        .await
        .failed(404);
    let long = json!({"templateID": "base", "metadata": {"a": "b".repeat(3 << 20)}});
    app.e2b(ALICE, "POST", "/v2/sandboxes", long)
        .await
        .failed(413);
    for (kind, text) in [
        ("application/json", "{"),
        ("application/json", "[]"),
        ("text/plain", "{}"),
        ("application/json", ""),
    ] {
        let mut request = app.request(ALICE, "POST", "/e2b/v2/sandboxes", Some(json!({})));
        request
            .headers_mut()
            .insert("content-type", kind.parse().unwrap());
        *request.body_mut() = text.into();
        app.send(At::Network, request).await.failed(400);
    }
    let health = app
        .e2b(Actor::Anonymous, "GET", "/health", Value::Null)
        .await;
    assert_eq!(health.status, 200);
}

#[tokio::test]
async fn quotas_and_failing_providers_have_the_status_the_sdks_expect() {
    let provider = FakeProvider::new();
    let app = TestApp::with(provider.clone(), ServerSettings::default()).await;
    let body = json!({"templateID": "base"});
    app.allow(1).await;
    app.make(ALICE, json!({})).await;
    let full = app.e2b(ALICE, "POST", "/v2/sandboxes", body.clone()).await;
    full.failed(429);
    assert_eq!(full.headers["should-retry"], "false");
    for (kind, status) in [
        (ProviderErrorKind::NoCapacity, 503),
        (ProviderErrorKind::Unavailable, 503),
        (ProviderErrorKind::TimedOut, 504),
        (ProviderErrorKind::Failed, 500),
    ] {
        app.provider.fail_next(Verb::Create, kind);
        let answer = app
            .e2b(Actor::Bob, "POST", "/v2/sandboxes", body.clone())
            .await;
        answer.failed(status);
        assert_eq!(answer.headers.contains_key("retry-after"), status == 503);
    }
}

#[tokio::test]
async fn answers_say_how_many_requests_are_left() {
    let settings = ServerSettings {
        rate_limit: 2,
        ..ServerSettings::default()
    };
    let app = TestApp::with(FakeProvider::new(), settings).await;
    let first = app.e2b(ALICE, "GET", "/v2/sandboxes", Value::Null).await;
    first.done(200);
    assert_eq!(first.headers["ratelimit-limit"], "4");
    assert_eq!(first.headers["ratelimit-remaining"], "3");
    // At once: one after the other may take half a second each on a busy machine.
    let more = (0..50).map(|_| app.e2b(ALICE, "GET", "/v2/sandboxes", Value::Null));
    let mut refused = join_all(more).await;
    refused.retain(|answer| answer.status == 429);
    let refused = refused.pop().expect("too many at last");
    refused.failed(429);
    assert_eq!(refused.headers["ratelimit-remaining"], "0");
    assert!(refused.headers.contains_key("retry-after"));
}
