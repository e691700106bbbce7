//! What should be against what is.

use sandyard_core::{SandboxId, SandboxState, SandboxStatus};
use sandyard_provider::Provider;

use crate::harness::{HOUR_MS, Yard, alice};

#[tokio::test]
async fn vanished_processes_are_noticed_with_the_reason_and_come_back_on_request() {
    let yard = Yard::new().await;
    let sandbox = yard.create().await;
    yard.provider
        .vanish(sandbox.provider_id.as_deref().unwrap());
    yard.pass(31_000).await;
    let row = yard.row(&sandbox.id).await;
    assert_eq!(row.status, SandboxStatus::Stopped);
    assert!(row.reason.is_some());
    assert!(
        yard.event_kinds(&sandbox.id)
            .await
            .contains(&"vanished".to_owned())
    );
    let live = yard
        .service
        .live(&alice(), sandbox.id.as_str())
        .await
        .unwrap();
    assert_eq!(live.sandbox.status, SandboxStatus::Running);
}

#[tokio::test]
async fn a_lost_instance_is_an_error_that_says_why_and_can_be_deleted() {
    let yard = Yard::new().await;
    let sandbox = yard.create().await;
    yard.provider.lose(sandbox.provider_id.as_deref().unwrap());
    yard.pass(31_000).await;
    let row = yard.row(&sandbox.id).await;
    assert_eq!(row.status, SandboxStatus::Error);
    assert!(row.reason.is_some());
    assert!(
        yard.service
            .live(&alice(), sandbox.id.as_str())
            .await
            .is_err()
    );
    yard.service
        .delete(&alice(), sandbox.id.as_str())
        .await
        .unwrap();
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Deleted);
}

#[tokio::test]
async fn orphans_go_after_a_grace_period_and_other_peoples_instances_stay() {
    let yard = Yard::new().await;
    yard.provider.add_stranger();
    yard.provider.add_orphan(SandboxId::from_random([9; 20]));
    let kept = yard.create().await;
    yard.pass(31_000).await;
    assert_eq!(yard.provider.instances().len(), 3, "too early");
    yard.pass(301_000).await;
    let left = yard.provider.instances();
    assert_eq!(left.len(), 2);
    assert!(
        left.iter()
            .any(|instance| instance.sandbox_id.as_ref() == Some(&kept.id))
    );
}

#[tokio::test]
async fn what_drifted_is_put_back_as_the_row_says() {
    let yard = Yard::new().await;
    let running = yard.create().await;
    let paused = yard.create().await;
    yard.service
        .pause(&alice(), paused.id.as_str(), None)
        .await
        .unwrap();
    yard.provider
        .pause(running.provider_id.as_deref().unwrap())
        .await
        .unwrap();
    yard.provider
        .resume(paused.provider_id.as_deref().unwrap())
        .await
        .unwrap();
    yard.pass(31_000).await;
    let state = |id: &Option<String>| {
        let id = id.clone().unwrap();
        let all = yard.provider.instances();
        all.into_iter()
            .find(|instance| instance.id == id)
            .unwrap()
            .state
    };
    assert_eq!(state(&running.provider_id), SandboxState::Running);
    assert_eq!(state(&paused.provider_id), SandboxState::Paused);
}

#[tokio::test]
async fn an_unreachable_provider_changes_nothing() {
    let yard = Yard::new().await;
    let sandbox = yard.create().await;
    yard.provider.set_reachable(false);
    yard.service.sweep().await.unwrap();
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Running);
    yard.provider.set_reachable(true);
    yard.pass(HOUR_MS / 2).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Running);
}

#[tokio::test]
async fn an_instance_that_comes_back_mends_its_sandbox() {
    let yard = Yard::new().await;
    let sandbox = yard.create().await;
    let id = sandbox.provider_id.clone().unwrap();
    let spec = yard.provider.spec_of(&id).unwrap();
    yard.provider.lose(&id);
    yard.pass(31_000).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Error);
    // A second instance for the same sandbox is not the one the row means, and goes.
    yard.provider.create(&spec).await.unwrap();
    yard.pass(31_000).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Error);
    yard.pass(301_000).await;
    assert!(yard.provider.instances().is_empty());
}

#[tokio::test]
async fn an_orphan_that_cannot_be_removed_does_not_protect_the_others() {
    let yard = Yard::new().await;
    for seed in [7, 8, 9] {
        yard.provider.add_orphan(SandboxId::from_random([seed; 20]));
    }
    yard.pass(1).await;
    yard.provider.fail_next(
        sandyard_provider::Verb::Delete,
        sandyard_provider::ProviderErrorKind::Failed,
    );
    yard.pass(301_000).await;
    assert_eq!(yard.provider.instances().len(), 1);
}

#[tokio::test]
async fn a_timer_that_was_lost_is_set_again() {
    let yard = Yard::new().await;
    let sandbox = yard.create().await;
    let timers = yard.service.timers();
    timers.clear("sandbox", sandbox.id.as_str()).await.unwrap();
    yard.pass(31_000).await;
    yard.pass(HOUR_MS).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Paused);
}
