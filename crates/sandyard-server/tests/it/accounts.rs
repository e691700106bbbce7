//! Login, users, keys, audit.

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use crate::app::{Actor, Answer, At, PASSWORD, TestApp};

use Actor::{Admin, Alice, Anonymous, Bob};

async fn bearer(app: &TestApp, token: &str, method: &str, path: &str) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", format!("Bearer {token}"))
        .body(Body::empty())
        .unwrap();
    app.send(At::Network, request).await
}

#[tokio::test]
async fn name_and_password_come_by_query_form_and_json() {
    let app = TestApp::new().await;
    let path = "/api/v1/auth/login/swagger";
    let form = |kind: &str, text: String| {
        Request::post(path)
            .header("content-type", kind)
            .body(Body::from(text))
            .unwrap()
    };
    let query = Request::post(format!("{path}/?username=alice&password={PASSWORD}"))
        .header("content-type", "application/json")
        .body(Body::empty())
        .unwrap();
    let json = json!({"username": "alice", "password": PASSWORD}).to_string();
    for request in [
        query,
        form(
            "application/x-www-form-urlencoded",
            format!("username=alice&password={PASSWORD}"),
        ),
        form("application/json", json),
    ] {
        let reply = app.send(At::Network, request).await.ok();
        assert_eq!(reply["expires_in"], 24 * 60 * 60);
        let token = reply["access_token"].as_str().unwrap();
        let me = bearer(&app, token, "GET", "/api/v1/auth/me").await.ok();
        assert_eq!(me["data"]["username"], "alice");
    }
    let enveloped = app
        .post(
            Anonymous,
            "/api/v1/auth/login",
            json!({"username": "alice", "password": PASSWORD}),
        )
        .await
        .ok();
    assert!(enveloped["data"]["access_token"].is_string());
}

#[tokio::test]
async fn a_login_is_refreshed_once_and_ended() {
    let app = TestApp::new().await;
    let path = format!("/api/v1/auth/login/swagger?username=alice&password={PASSWORD}");
    let first = app.ask(Anonymous, "POST", &path, None).await.ok();
    let refresh = json!({"refresh_token": first["refresh_token"]});
    let second = app
        .post(Anonymous, "/api/v1/auth/refresh", refresh.clone())
        .await
        .ok();
    let token = second["data"]["access_token"].as_str().unwrap().to_owned();
    bearer(&app, &token, "GET", "/sandboxes").await.ok();
    assert_eq!(
        bearer(&app, &token, "POST", "/api/v1/auth/logout")
            .await
            .ok()["data"]["success"],
        true
    );
    bearer(&app, &token, "GET", "/sandboxes").await.refused(401);
    app.post(Anonymous, "/api/v1/auth/refresh", refresh)
        .await
        .refused(401);
}

#[tokio::test]
async fn five_wrong_passwords_lock_and_the_answer_says_for_how_long() {
    let app = TestApp::new().await;
    let wrong = "/api/v1/auth/login/swagger?username=bob&password=wrong-password";
    for _ in 0..5 {
        let answer = app.ask(Anonymous, "POST", wrong, None).await;
        assert!(answer.status == 401 || answer.status == 429, "{answer:?}");
    }
    let right = format!("/api/v1/auth/login/swagger?username=bob&password={PASSWORD}");
    let locked = app.ask(Anonymous, "POST", &right, None).await;
    assert_eq!(locked.refused(429)["code"], "rate_limited");
    let wait: u64 = locked.headers["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=300).contains(&wait), "{wait}");
    app.clock.advance_ms(301_000);
    app.ask(Anonymous, "POST", &right, None).await.ok();
}

#[tokio::test]
async fn a_token_ends_after_a_day() {
    let app = TestApp::new().await;
    let path = format!("/api/v1/auth/login/swagger?username=alice&password={PASSWORD}");
    let reply = app.ask(Anonymous, "POST", &path, None).await.ok();
    let token = reply["access_token"].as_str().unwrap();
    bearer(&app, token, "GET", "/sandboxes").await.ok();
    app.clock.advance_ms(24 * 60 * 60 * 1000 + 1);
    let refused = bearer(&app, token, "GET", "/sandboxes").await;
    refused.refused(401);
    assert_eq!(refused.headers["www-authenticate"], "Bearer");
    let forged = format!("{}x", &token[..token.len() - 1]);
    bearer(&app, &forged, "GET", "/sandboxes")
        .await
        .refused(401);
}

#[tokio::test]
async fn users_are_made_changed_and_removed() {
    let app = TestApp::new().await;
    let user = json!({"name": "carol", "password": PASSWORD, "role": "user", "max_sandboxes": 1});
    let made = app.post(Admin, "/users", user.clone()).await.ok();
    assert_eq!(
        (&made["name"], &made["has_password"]),
        (&json!("carol"), &json!(true))
    );
    app.post(Admin, "/users", user).await.refused(409);
    let changed = app
        .ask(
            Admin,
            "PATCH",
            "/users/carol",
            Some(json!({"disabled": true})),
        )
        .await
        .ok();
    assert_eq!(changed["disabled"], true);
    assert_eq!(app.get(Admin, "/users/carol").await.ok()["disabled"], true);
    assert_eq!(
        app.get(Admin, "/users").await.ok()["users"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
    app.ask(Admin, "DELETE", "/users/carol", None).await.ok();
    app.get(Admin, "/users/carol").await.refused(404);
    // A later user with the same name would get the sandboxes.
    let id = app.sandbox(Bob).await;
    let refused = app.ask(Admin, "DELETE", "/users/Bob", None).await;
    assert!(refused.refused(409)["hint"].is_string());
    app.ask(Bob, "DELETE", &format!("/sandboxes/{id}"), None)
        .await
        .ok();
    app.ask(Admin, "DELETE", "/users/Bob", None).await.ok();
    // The last one who can administer stays.
    app.ask(Admin, "DELETE", "/users/root", None)
        .await
        .refused(409);
}

#[tokio::test]
async fn keys_never_give_more_than_their_maker_has() {
    let app = TestApp::new().await;
    let login = app
        .app
        .auth()
        .login("alice", PASSWORD)
        .await
        .unwrap()
        .access_token;
    let make = async |body: Value| {
        let mut request = app.request(Anonymous, "POST", "/keys", Some(body));
        let bearer = format!("Bearer {login}").parse().unwrap();
        request.headers_mut().insert("authorization", bearer);
        app.send(At::Network, request).await
    };
    let request_body = json!({"name": "mine", "scopes": ["read"]});
    let made = make(request_body.clone()).await.ok();
    // A key that ends would live on in those it makes.
    let refused = app.post(Alice, "/keys", request_body).await.refused(403);
    assert!(refused["hint"].as_str().unwrap().starts_with("log in"));
    let key = made["key"].as_str().unwrap();
    assert_eq!(
        (&made["owner"], &made["scopes"]),
        (&json!("alice"), &json!(["read"]))
    );
    bearer(&app, key, "GET", "/sandboxes").await.ok();
    for body in [
        json!({"name": "k", "scopes": ["admin"]}),
        json!({"name": "k", "user": "bob"}),
    ] {
        make(body).await.refused(403);
    }
    let list = app.get(Alice, "/keys").await.ok();
    let owners: Vec<_> = list["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["owner"])
        .collect();
    assert!(owners.iter().all(|owner| **owner == "alice") && owners.len() == 3);
    assert!(!list.to_string().contains(key), "a key is shown once");
    let id = made["id"].as_str().unwrap();
    app.ask(Bob, "DELETE", &format!("/keys/{id}"), None)
        .await
        .refused(404);
    app.ask(Alice, "DELETE", &format!("/keys/{id}"), None)
        .await
        .ok();
    bearer(&app, key, "GET", "/sandboxes").await.refused(401);
}

#[tokio::test]
async fn who_did_what_is_remembered() {
    let app = TestApp::new().await;
    let id = app.sandbox(Alice).await;
    app.ask(Alice, "DELETE", &format!("/sandboxes/{id}"), None)
        .await
        .ok();
    app.post(Bob, "/sandboxes/delete", json!({"sandbox_id": id}))
        .await
        .refused(404);
    app.get(Alice, "/sandboxes").await.ok();
    let audit = app.get(Admin, "/audit").await.ok();
    let seen: Vec<(&Value, &Value, &Value, &Value)> = audit["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (&it["actor"], &it["action"], &it["target"], &it["status"]))
        .collect();
    let id = json!(id);
    assert_eq!(
        seen,
        [
            (&json!("bob"), &json!("delete sandbox"), &id, &json!(404)),
            (&json!("alice"), &json!("delete sandbox"), &id, &json!(200)),
            (&json!("alice"), &json!("create sandbox"), &id, &json!(200)),
        ]
    );
    let entry = &audit["entries"][0];
    assert_eq!(entry["address"], "192.0.2.9");
    assert!(entry["via"].as_str().unwrap().starts_with("key:"));
    let bobs = app.get(Admin, "/audit?actor=bob&limit=5").await.ok();
    assert_eq!(bobs["entries"].as_array().unwrap().len(), 1);
}
