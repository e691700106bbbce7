//! What is sent again, and what never is.

use sandyard_client::{CreateSandbox, RunCommand};

use crate::script::{Act, Script};

const CREATED: &str = r#"{"success":true,"sandbox_id":"abc","status":"running","mcp_url":"m"}"#;

#[tokio::test]
async fn create_is_retried_with_the_same_key_after_a_lost_response() {
    let server = Script::play(vec![Act::Cut, Act::Cut, Act::json("200 OK", CREATED)]).await;
    let sandbox = server
        .client
        .create(&CreateSandbox::default())
        .await
        .unwrap();
    assert_eq!(sandbox.sandbox_id, "abc");
    assert_eq!(sandbox.other["mcp_url"], "m");
    let keys = server.header("idempotency-key");
    assert!(keys[0].is_some());
    assert_eq!(keys, vec![keys[0].clone(); 3]);
    assert_eq!(
        server.header("authorization"),
        vec![Some("Bearer e2b_key".to_owned()); 3]
    );
}

#[tokio::test]
async fn each_create_has_its_own_idempotency_key() {
    let acts = vec![Act::json("200 OK", CREATED), Act::json("200 OK", CREATED)];
    let server = Script::play(acts).await;
    for _ in 0..2 {
        server
            .client
            .create(&CreateSandbox::default())
            .await
            .unwrap();
    }
    let keys = server.header("idempotency-key");
    assert_ne!(keys[0], keys[1]);
}

#[tokio::test]
async fn rejected_create_is_not_retried() {
    let full = Act::json(
        "503 Service Unavailable",
        r#"{"detail":"full","code":"no_capacity"}"#,
    );
    let server = Script::play(vec![full, Act::json("200 OK", CREATED)]).await;
    let error = server
        .client
        .create(&CreateSandbox::default())
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some("no_capacity"));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn command_is_never_retried() {
    let done = Act::json("200 OK", r#"{"exit_code":0,"stdout":"","stderr":""}"#);
    let server = Script::play(vec![Act::Cut, done]).await;
    let run = server.client.run("abc", &RunCommand::shell("true")).await;
    assert!(run.is_err());
    assert_eq!(server.requests().len(), 1);
}
