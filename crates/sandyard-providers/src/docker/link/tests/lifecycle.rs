//! Start and end of links.

use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use tokio::io::AsyncReadExt;

use super::env::{TestEnv, sh, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_share_one_link_and_the_agent_is_initialised_first() {
    let env = TestEnv::new();
    let clients = (0..20).map(|_| env.client());
    let output =
        join_all(clients.map(|client| async move { sh(&client, "echo $TOLD").await })).await;
    assert!(output.iter().all(|output| output == "yes\n"), "{output:?}");
    assert_eq!(env.opener.opened_count.load(Ordering::Relaxed), 1);
    let activity = env.client().activity().await.expect("activity");
    assert!(activity.initialised);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_breaks_is_replaced() {
    let env = TestEnv::new();
    let client = env.client();
    assert_eq!(sh(&client, "echo 1").await, "1\n");
    for count in 2..5 {
        let dialler = env.links.dialler("one");
        let mut broken = dialler.dial().await.expect("a connection");
        env.opener.kill_all();
        // The client sees an error, not the end of a stream.
        let mut rest = Vec::new();
        broken.read_to_end(&mut rest).await.expect_err("an error");
        until(|| env.opener.have_all_ended()).await;
        assert_eq!(sh(&client, "echo again").await, "again\n");
        assert_eq!(env.opener.opened_count.load(Ordering::Relaxed), count);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forgetting_a_link_closes_both_ends() {
    let env = TestEnv::new();
    let dialler = env.links.dialler("one");
    let mut connection = dialler.dial().await.expect("a connection");
    env.links.forget("one");
    let mut rest = Vec::new();
    connection
        .read_to_end(&mut rest)
        .await
        .expect_err("an error");
    until(|| env.opener.have_all_ended()).await;
    // A new link is opened on demand.
    assert_eq!(sh(&env.client(), "echo 1").await, "1\n");
    env.links.close_all();
    until(|| env.opener.have_all_ended()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_waiting_callers_get_the_error_of_a_failed_link() {
    let env = TestEnv::new();
    env.opener.refuse("no such container");
    let diallers: Vec<_> = (0..10).map(|_| env.links.dialler("one")).collect();
    let errors = join_all(diallers.iter().map(|dialler| dialler.dial())).await;
    for error in errors {
        let error = error.err().expect("an error");
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
        assert_eq!(error.to_string(), "no such container");
    }
}
