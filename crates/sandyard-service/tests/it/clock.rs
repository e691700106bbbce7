//! The wall clock is set forward and back under every verb: nothing is lost, nothing is stuck.

use sandyard_core::SandboxStatus;

use crate::harness::{HOUR_MS, TestEnv, alice, request_with_timeout};

const MONTH_MS: i64 = 30 * 24 * HOUR_MS;

#[tokio::test]
async fn a_jump_forward_deletes_nothing_until_it_has_lasted_an_hour() {
    let env = TestEnv::new().await;
    let sandbox = env.make(request_with_timeout(60)).await;
    env.service
        .pause(&alice(), sandbox.id.as_str(), None)
        .await
        .unwrap();
    env.clock.jump_ms(MONTH_MS);
    env.service.sweep().await.unwrap();
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Paused);
    env.clock.jump_ms(-MONTH_MS);
    env.pass(HOUR_MS).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Paused);
    env.clock.jump_ms(MONTH_MS);
    env.service.sweep().await.unwrap();
    env.pass(HOUR_MS / 2).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Paused);
    env.pass(HOUR_MS).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Deleted);
}

#[tokio::test]
async fn after_a_jump_back_a_sandbox_is_still_paused_when_it_is_idle() {
    let env = TestEnv::new().await;
    let sandbox = env.make(request_with_timeout(60)).await;
    env.service.flush().await;
    env.clock.jump_ms(-MONTH_MS);
    env.service.sweep().await.unwrap();
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Running);
    env.pass(61_000).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Paused);
}

#[tokio::test]
async fn every_verb_works_after_a_jump_forwards_and_backwards() {
    for jump_ms in [MONTH_MS, -MONTH_MS] {
        let env = TestEnv::new().await;
        let before = env.create().await;
        env.clock.jump_ms(jump_ms);
        env.service.sweep().await.unwrap();
        let (service, name) = (&env.service, before.id.as_str());
        service.pause(&alice(), name, None).await.unwrap();
        service.connect(&alice(), name).await.unwrap();
        service.snapshot(&alice(), name, "kept").await.unwrap();
        service.stop(&alice(), name).await.unwrap();
        service.connect(&alice(), name).await.unwrap();
        let made = env.create().await;
        service.delete(&alice(), made.id.as_str()).await.unwrap();
        service.delete(&alice(), name).await.unwrap();
        env.service.sweep().await.unwrap();
        assert_eq!(env.row(&before.id).await.status, SandboxStatus::Deleted);
        assert!(env.provider.instances().is_empty());
    }
}
