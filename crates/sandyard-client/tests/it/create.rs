//! What is sent again, and what never is.

use sandyard_client::{CreateSandbox, RunCommand};

use crate::script::{Act, Script};

const MADE: &str = r#"{"success":true,"sandbox_id":"abc","status":"running","mcp_url":"m"}"#;

#[tokio::test]
async fn a_create_whose_answer_was_lost_is_repeated_with_the_same_key() {
    let server = Script::play(vec![Act::Cut, Act::Cut, Act::json("200 OK", MADE)]).await;
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
async fn two_creates_have_two_keys() {
    let acts = vec![Act::json("200 OK", MADE), Act::json("200 OK", MADE)];
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
async fn a_refused_create_is_not_repeated() {
    let full = Act::json(
        "503 Service Unavailable",
        r#"{"detail":"full","code":"no_capacity"}"#,
    );
    let server = Script::play(vec![full, Act::json("200 OK", MADE)]).await;
    let error = server
        .client
        .create(&CreateSandbox::default())
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some("no_capacity"));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_command_is_never_repeated() {
    let done = Act::json("200 OK", r#"{"exit_code":0,"stdout":"","stderr":""}"#);
    let server = Script::play(vec![Act::Cut, done]).await;
    let run = server.client.run("abc", &RunCommand::shell("true")).await;
    assert!(run.is_err());
    assert_eq!(server.requests().len(), 1);
}
