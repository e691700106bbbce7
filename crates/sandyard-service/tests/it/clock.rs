//! The wall clock is set forward and back under every verb: nothing is lost, nothing is stuck.

use sandyard_core::SandboxStatus;

use crate::harness::{HOUR_MS, Yard, alice, request_with_timeout};

const MONTH_MS: i64 = 30 * 24 * HOUR_MS;

#[tokio::test]
async fn a_jump_forward_deletes_nothing_until_it_has_lasted_an_hour() {
    let yard = Yard::new().await;
    let sandbox = yard.make(request_with_timeout(60)).await;
    yard.service
        .pause(&alice(), sandbox.id.as_str(), None)
        .await
        .unwrap();
    yard.clock.jump_ms(MONTH_MS);
    yard.service.sweep().await.unwrap();
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Paused);
    yard.clock.jump_ms(-MONTH_MS);
    yard.pass(HOUR_MS).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Paused);
    yard.clock.jump_ms(MONTH_MS);
    yard.service.sweep().await.unwrap();
    yard.pass(HOUR_MS / 2).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Paused);
    yard.pass(HOUR_MS).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Deleted);
}

#[tokio::test]
async fn after_a_jump_back_a_sandbox_is_still_paused_when_it_is_idle() {
    let yard = Yard::new().await;
    let sandbox = yard.make(request_with_timeout(60)).await;
    yard.service.flush().await;
    yard.clock.jump_ms(-MONTH_MS);
    yard.service.sweep().await.unwrap();
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Running);
    yard.pass(61_000).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Paused);
}

#[tokio::test]
async fn every_verb_works_after_a_jump_either_way() {
    for jump_ms in [MONTH_MS, -MONTH_MS] {
        let yard = Yard::new().await;
        let before = yard.create().await;
        yard.clock.jump_ms(jump_ms);
        yard.service.sweep().await.unwrap();
        let (service, name) = (&yard.service, before.id.as_str());
        service.pause(&alice(), name, None).await.unwrap();
        service.connect(&alice(), name).await.unwrap();
        service.snapshot(&alice(), name, "kept").await.unwrap();
        service.stop(&alice(), name).await.unwrap();
        service.connect(&alice(), name).await.unwrap();
        let made = yard.create().await;
        service.delete(&alice(), made.id.as_str()).await.unwrap();
        service.delete(&alice(), name).await.unwrap();
        yard.service.sweep().await.unwrap();
        assert_eq!(yard.row(&before.id).await.status, SandboxStatus::Deleted);
        assert!(yard.provider.instances().is_empty());
    }
}
