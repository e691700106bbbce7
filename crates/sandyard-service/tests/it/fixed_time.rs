//! Sandboxes whose time is counted from when it was set, as E2B's clients want it.

use std::time::Duration;

use sandyard_core::SandboxStatus;
use sandyard_service::{
    ConnectRequest, CreateRequest, Expiry, Sandbox, TimeoutAction, TimeoutRequest,
};

use crate::harness::{TestEnv, alice};

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

async fn make(env: &TestEnv, timeout: u64, action: TimeoutAction) -> Sandbox {
    env.make(CreateRequest {
        timeout: Some(seconds(timeout)),
        timeout_action: Some(action),
        expiry: Some(Expiry::Fixed),
        ..CreateRequest::default()
    })
    .await
}

async fn connect(env: &TestEnv, sandbox: &Sandbox, timeout: u64) -> (Sandbox, bool) {
    let request = ConnectRequest {
        timeout: Some(seconds(timeout)),
        is_cold: false,
    };
    let connected = env
        .service
        .connect_for(&alice(), sandbox.id.as_str(), request)
        .await
        .expect("it can be connected to");
    (connected.sandbox, connected.was_woken)
}

#[tokio::test]
async fn connecting_extends_and_never_shortens() {
    let env = TestEnv::new().await;
    let sandbox = make(&env, 300, TimeoutAction::Delete).await;
    let end_ms = sandbox.fixed_end_ms.unwrap();
    let (shorter, was_woken) = connect(&env, &sandbox, 10).await;
    assert_eq!((shorter.fixed_end_ms, was_woken), (Some(end_ms), false));
    let (longer, _) = connect(&env, &sandbox, 400).await;
    assert_eq!(longer.fixed_end_ms, Some(end_ms + 100_000));
    env.pass(399_000).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Running);
    env.pass(2_000).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Deleted);
}

#[tokio::test]
async fn one_that_is_woken_gets_exactly_the_time_that_was_asked_for() {
    let env = TestEnv::new().await;
    let sandbox = make(&env, 300, TimeoutAction::Pause).await;
    env.pass(301_000).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Paused);
    let (woken, was_woken) = connect(&env, &sandbox, 10).await;
    assert!(was_woken);
    assert_eq!(woken.fixed_end_ms, Some(env.clock.now_ms() + 10_000));
    env.pass(11_000).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Paused);
}

#[tokio::test]
async fn a_cold_connect_gives_up_what_was_in_memory() {
    let env = TestEnv::new().await;
    let sandbox = make(&env, 300, TimeoutAction::Pause).await;
    let name = sandbox.id.as_str();
    for (is_cold, is_restarted) in [(false, false), (true, true)] {
        env.service.pause(&alice(), name, None).await.unwrap();
        env.clock.advance_ms(1000);
        let before = env.row(&sandbox.id).await.started_ms;
        let request = ConnectRequest {
            timeout: None,
            is_cold,
        };
        let connected = env
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
    let env = TestEnv::new().await;
    let sandbox = make(&env, 300, TimeoutAction::Stop).await;
    let name = sandbox.id.as_str();
    let request = TimeoutRequest {
        timeout: Duration::ZERO,
        action: None,
        expiry: Some(Expiry::Fixed),
    };
    env.service
        .set_timeout(&alice(), name, request)
        .await
        .unwrap();
    env.pass(1).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Stopped);
    let woken = env.service.connect(&alice(), name).await.unwrap();
    assert_eq!(woken.fixed_end_ms, Some(env.clock.now_ms() + 300_000));
}

#[tokio::test]
async fn extending_leaves_a_paused_one_paused() {
    let env = TestEnv::new().await;
    let sandbox = make(&env, 300, TimeoutAction::Pause).await;
    let name = sandbox.id.as_str();
    env.service.pause(&alice(), name, None).await.unwrap();
    let extended = env
        .service
        .extend(&alice(), name, seconds(900))
        .await
        .unwrap();
    assert_eq!(extended.status, SandboxStatus::Paused);
}
