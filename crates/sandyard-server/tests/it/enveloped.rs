//! The enveloped dialect: the same routes below two prefixes, in an envelope.

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use crate::app::{Actor, At, PASSWORD, TestApp};

const PREFIXES: [&str; 2] = ["/agent/sandboxes/sandboxes", "/api/v1/agent/sandboxes"];

async fn login(app: &TestApp) -> String {
    let path = format!("/api/v1/auth/login/swagger?username=alice&password={PASSWORD}");
    let reply = app.ask(Actor::Anonymous, "POST", &path, None).await.ok();
    assert_eq!(reply["token_type"], "bearer");
    assert_eq!(reply["user"]["username"], "alice");
    reply["access_token"].as_str().unwrap().to_owned()
}

fn request(token: &str, method: &str, path: &str, body: Option<Value>) -> Request<Body> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "yard.test")
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .header("x-request-id", "0f8fad5b-d9cb-469f-a165-70867728950e")
        .body(body.map_or_else(Body::empty, |body| Body::from(body.to_string())))
        .unwrap()
}

#[tokio::test]
async fn answers_come_in_envelopes_below_both_prefixes() {
    let app = TestApp::new().await;
    let token = login(&app).await;
    for prefix in PREFIXES {
        let create = request(
            &token,
            "POST",
            &format!("{prefix}/create"),
            Some(json!({"user_id": "demo"})),
        );
        let answer = app.send(At::Network, create).await;
        let reply = answer.ok();
        assert_eq!(
            (&reply["code"], &reply["msg"]),
            (&json!(200), &json!("Request success"))
        );
        assert_eq!(
            answer.headers["content-length"],
            answer.text.len().to_string()
        );
        assert_eq!(
            answer.headers["x-request-id"],
            "0f8fad5b-d9cb-469f-a165-70867728950e"
        );
        let id = reply["data"]["sandbox_id"].as_str().unwrap();
        let info = request(&token, "GET", &format!("{prefix}/{id}/info"), None);
        assert_eq!(
            app.send(At::Network, info).await.ok()["data"]["user_id"],
            "alice"
        );
        // The same sandbox in the other dialects.
        app.get(Actor::Alice, &format!("/sandboxes/{id}/status"))
            .await
            .ok();
        app.get(Actor::Alice, &format!("/api/sandboxes/{id}"))
            .await
            .ok();
        let delete = request(&token, "DELETE", &format!("{prefix}/{id}"), None);
        assert_eq!(
            app.send(At::Network, delete).await.ok()["data"]["success"],
            true
        );
    }
}

#[tokio::test]
async fn errors_come_in_envelopes_with_their_status() {
    let app = TestApp::new().await;
    let token = login(&app).await;
    for prefix in PREFIXES {
        for (method, path, body, status) in [
            ("GET", "/nosuch/status", None, 404),
            ("GET", "/nosuch/nosuch", None, 404),
            ("PUT", "/create", Some(json!({})), 405),
            ("POST", "/create", Some(json!({"timeout": 0})), 422),
            ("POST", "/run-cmd", Some(json!([])), 422),
        ] {
            let http_request = request(&token, method, &format!("{prefix}{path}"), body);
            let answer = app.send(At::Network, http_request).await;
            let reply = answer.refused(status);
            assert_eq!(reply["code"], status, "{path}");
            assert_eq!(reply["data"], Value::Null);
            assert_eq!(reply["trace_id"], "0f8fad5b-d9cb-469f-a165-70867728950e");
            assert!(reply["msg"].is_string());
        }
    }
}

#[tokio::test]
async fn credentials_are_asked_for_on_loopback_too() {
    let app = TestApp::new().await;
    for prefix in PREFIXES {
        let mut http_request =
            app.request(Actor::Anonymous, "GET", &format!("{prefix}/status"), None);
        http_request
            .headers_mut()
            .insert("host", "localhost".parse().unwrap());
        let answer = app.send(At::Loopback, http_request).await;
        let reply = answer.refused(401);
        assert_eq!(
            (&reply["code"], &reply["data"]),
            (&json!(401), &Value::Null)
        );
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
    }
}

#[tokio::test]
async fn a_malformed_request_id_is_refused_in_the_dialects_format() {
    let app = TestApp::new().await;
    let token = login(&app).await;
    let mut http_request = request(&token, "GET", "/agent/sandboxes/sandboxes/status", None);
    http_request
        .headers_mut()
        .insert("x-request-id", "not an id!".parse().unwrap());
    let answer = app.send(At::Network, http_request).await;
    let reply = answer.refused(400);
    assert_eq!(reply["code"], 400);
    let generated = answer.headers["x-request-id"].to_str().unwrap();
    assert_eq!(reply["trace_id"], generated);
    assert_eq!(generated.len(), 36);
}
