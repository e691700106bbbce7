//! Sandboxes whose time is counted from when it was set, as E2B's clients want it.

use std::time::Duration;

use sandyard_core::SandboxStatus;
use sandyard_service::{
    ConnectRequest, CreateRequest, Expiry, Sandbox, TimeoutAction, TimeoutRequest,
};

use crate::harness::{Yard, alice};

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

async fn make(yard: &Yard, timeout: u64, action: TimeoutAction) -> Sandbox {
    yard.make(CreateRequest {
        timeout: Some(seconds(timeout)),
        timeout_action: Some(action),
        expiry: Some(Expiry::Fixed),
        ..CreateRequest::default()
    })
    .await
}

async fn connect(yard: &Yard, sandbox: &Sandbox, timeout: u64) -> (Sandbox, bool) {
    let request = ConnectRequest {
        timeout: Some(seconds(timeout)),
        is_cold: false,
    };
    let connected = yard
        .service
        .connect_for(&alice(), sandbox.id.as_str(), request)
        .await
        .expect("it can be connected to");
    (connected.sandbox, connected.was_woken)
}

#[tokio::test]
async fn connecting_extends_and_never_shortens() {
    let yard = Yard::new().await;
    let sandbox = make(&yard, 300, TimeoutAction::Delete).await;
    let end_ms = sandbox.fixed_end_ms.unwrap();
    let (shorter, was_woken) = connect(&yard, &sandbox, 10).await;
    assert_eq!((shorter.fixed_end_ms, was_woken), (Some(end_ms), false));
    let (longer, _) = connect(&yard, &sandbox, 400).await;
    assert_eq!(longer.fixed_end_ms, Some(end_ms + 100_000));
    yard.pass(399_000).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Running);
    yard.pass(2_000).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Deleted);
}

#[tokio::test]
async fn one_that_is_woken_gets_exactly_the_time_that_was_asked_for() {
    let yard = Yard::new().await;
    let sandbox = make(&yard, 300, TimeoutAction::Pause).await;
    yard.pass(301_000).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Paused);
    let (woken, was_woken) = connect(&yard, &sandbox, 10).await;
    assert!(was_woken);
    assert_eq!(woken.fixed_end_ms, Some(yard.clock.now_ms() + 10_000));
    yard.pass(11_000).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Paused);
}

#[tokio::test]
async fn a_cold_connect_gives_up_what_was_in_memory() {
    let yard = Yard::new().await;
    let sandbox = make(&yard, 300, TimeoutAction::Pause).await;
    let name = sandbox.id.as_str();
    for (is_cold, is_restarted) in [(false, false), (true, true)] {
        yard.service.pause(&alice(), name, None).await.unwrap();
        yard.clock.advance_ms(1000);
        let before = yard.row(&sandbox.id).await.started_ms;
        let request = ConnectRequest {
            timeout: None,
            is_cold,
        };
        let connected = yard
            .service
            .connect_for(&alice(), name, request)
            .await
            .unwrap();
        assert_eq!(connected.sandbox.status, SandboxStatus::Running);
        assert_eq!(connected.sandbox.started_ms != before, is_restarted);
    }
}

#[tokio::test]
async fn a_time_of_nothing_ends_it_now_and_is_not_remembered() {
    let yard = Yard::new().await;
    let sandbox = make(&yard, 300, TimeoutAction::Stop).await;
    let name = sandbox.id.as_str();
    let request = TimeoutRequest {
        timeout: Duration::ZERO,
        action: None,
        expiry: Some(Expiry::Fixed),
    };
    yard.service
        .set_timeout(&alice(), name, request)
        .await
        .unwrap();
    yard.pass(1).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Stopped);
    let woken = yard.service.connect(&alice(), name).await.unwrap();
    assert_eq!(woken.fixed_end_ms, Some(yard.clock.now_ms() + 300_000));
}

#[tokio::test]
async fn extending_leaves_a_paused_one_paused() {
    let yard = Yard::new().await;
    let sandbox = make(&yard, 300, TimeoutAction::Pause).await;
    let name = sandbox.id.as_str();
    yard.service.pause(&alice(), name, None).await.unwrap();
    let extended = yard
        .service
        .extend(&alice(), name, seconds(900))
        .await
        .unwrap();
    assert_eq!(extended.status, SandboxStatus::Paused);
}
