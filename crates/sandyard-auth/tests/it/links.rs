//! Signed links, and words between servers.

use std::time::Duration;

use sandyard_auth::Rejection;
use sandyard_core::SandboxId;

use crate::{START_MS, TestAuth, rejection};

fn id(text: &str) -> SandboxId {
    text.parse().expect("an id")
}

#[tokio::test]
async fn a_link_opens_one_port_of_one_sandbox_until_its_end() {
    let auth = TestAuth::empty().await;
    let token = auth.sign_preview(&id("abc"), 8080, START_MS + 5000);
    auth.check_preview(&token, &id("abc"), 8080).unwrap();
    assert_eq!(
        rejection(auth.check_preview(&token, &id("abc"), 8081)),
        Rejection::Forged
    );
    assert_eq!(
        rejection(auth.check_preview(&token, &id("abd"), 8080)),
        Rejection::Forged
    );
    // The end of one field cannot become the beginning of the next.
    let token = auth.sign_preview(&id("abc1"), 23, START_MS + 5000);
    assert_eq!(
        rejection(auth.check_preview(&token, &id("abc"), 123)),
        Rejection::Forged
    );
    auth.advance(Duration::from_millis(5000));
    assert_eq!(
        rejection(auth.check_preview(&token, &id("abc1"), 23)),
        Rejection::Expired
    );
}

#[tokio::test]
async fn a_link_works_at_every_server_of_the_store_and_no_other() {
    let (auth, unrelated) = (TestAuth::empty().await, TestAuth::empty().await);
    let token = auth.sign_preview(&id("abc"), 80, START_MS + 5000);
    auth.replica()
        .await
        .check_preview(&token, &id("abc"), 80)
        .unwrap();
    assert_eq!(
        rejection(unrelated.check_preview(&token, &id("abc"), 80)),
        Rejection::Forged
    );
}

#[tokio::test]
async fn servers_know_each_other_for_a_minute() {
    let auth = TestAuth::empty().await;
    let other = auth.replica().await;
    let token = auth.sign_node();
    other.check_node(&token).unwrap();
    auth.advance(Duration::from_millis(59_999));
    other.check_node(&token).unwrap();
    auth.advance(Duration::from_millis(1));
    assert_eq!(rejection(other.check_node(&token)), Rejection::Expired);
    assert_eq!(
        rejection(TestAuth::empty().await.check_node(&auth.sign_node())),
        Rejection::Forged
    );
}

#[tokio::test]
async fn a_word_from_a_far_future_is_refused() {
    let auth = TestAuth::empty().await;
    auth.clock.advance_ms(3_600_000);
    let token = auth.sign_node();
    auth.clock.advance_ms(-3_600_000);
    assert_eq!(rejection(auth.check_node(&token)), Rejection::Expired);
}

#[tokio::test]
async fn no_word_serves_another_purpose() {
    let auth = TestAuth::empty().await;
    let link = auth.sign_preview(&id("node"), 80, START_MS + 5000);
    assert_eq!(rejection(auth.check_node(&link)), Rejection::Forged);
    let node = auth.sign_node();
    assert_eq!(
        rejection(auth.check_preview(&node, &id("node"), 80)),
        Rejection::Forged
    );
    for word in [link, node] {
        assert_eq!(auth.rejection(&word).await, Rejection::Malformed);
    }
}
