//! How links begin and end.

use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use tokio::io::AsyncReadExt;

use super::env::{TestEnv, sh, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_who_want_a_link_share_one_and_the_agent_is_told_first() {
    let env = TestEnv::new();
    let clients = (0..20).map(|_| env.client());
    let said = join_all(clients.map(|client| async move { sh(&client, "echo $TOLD").await })).await;
    assert!(said.iter().all(|said| said == "yes\n"), "{said:?}");
    assert_eq!(env.opener.opened.load(Ordering::Relaxed), 1);
    let activity = env.client().activity().await.expect("activity");
    assert!(activity.initialised);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_breaks_is_replaced() {
    let env = TestEnv::new();
    let client = env.client();
    assert_eq!(sh(&client, "echo 1").await, "1\n");
    for count in 2..5 {
        let way = env.links.way("one");
        let mut broken = way.dial().await.expect("a connection");
        env.opener.kill_all();
        // Whoever uses it notices, and not as if it had ended.
        let mut rest = Vec::new();
        broken.read_to_end(&mut rest).await.expect_err("an error");
        until(|| env.opener.have_all_ended()).await;
        assert_eq!(sh(&client, "echo again").await, "again\n");
        assert_eq!(env.opener.opened.load(Ordering::Relaxed), count);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forgotten_link_ends_at_both_ends() {
    let env = TestEnv::new();
    let way = env.links.way("one");
    let mut connection = way.dial().await.expect("a connection");
    env.links.forget("one");
    let mut rest = Vec::new();
    connection
        .read_to_end(&mut rest)
        .await
        .expect_err("an error");
    until(|| env.opener.have_all_ended()).await;
    // Wanted again, there is another.
    assert_eq!(sh(&env.client(), "echo 1").await, "1\n");
    env.links.close_all();
    until(|| env.opener.have_all_ended()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_cannot_be_opened_is_told_to_all_who_wait() {
    let env = TestEnv::new();
    env.opener.refuse("no such container");
    let ways: Vec<_> = (0..10).map(|_| env.links.way("one")).collect();
    let errors = join_all(ways.iter().map(|way| way.dial())).await;
    for error in errors {
        let error = error.err().expect("an error");
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
        assert_eq!(error.to_string(), "no such container");
    }
}
