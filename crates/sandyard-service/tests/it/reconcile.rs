//! What should be against what is.

use sandyard_core::{ErrorKind, SandboxId, SandboxState, SandboxStatus};
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
async fn what_a_deleted_sandbox_left_goes_after_a_grace_period() {
    let yard = Yard::new().await;
    yard.provider.add_stranger();
    let kept = yard.create().await;
    let gone = deleted(&yard).await;
    yard.provider.add_orphan(gone);
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

/// The id of a sandbox that was.
async fn deleted(yard: &Yard) -> SandboxId {
    let sandbox = yard.create().await;
    let id = sandbox.id.as_str();
    let deleted = yard.service.delete(&alice(), id).await;
    deleted.expect("the yard works");
    sandbox.id
}

#[tokio::test]
async fn what_a_restored_database_does_not_know_is_told_of_and_left_alone() {
    let made_later = SandboxId::from_random([9; 20]);
    let yard = Yard::new().await;
    let kept = yard.create().await;
    let id = yard.provider.add_orphan(made_later.clone());
    for _ in 0..3 {
        yard.pass(301_000).await;
    }
    assert_eq!(yard.provider.instances().len(), 2, "it is somebody's");
    let unknown = yard.service.unknown_instances().await.unwrap();
    assert!(unknown.unreachable.is_empty());
    let [one] = &unknown.instances[..] else {
        panic!("{unknown:?}");
    };
    assert_eq!((&one.instance.id, one.provider.as_str()), (&id, "fake"));
    assert_eq!(one.instance.sandbox_id, Some(made_later));
    // Only those can be removed so.
    let known = kept.provider_id.as_deref().unwrap();
    let refused = yard.service.delete_unknown_instance(known).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::NotFound);
    yard.service.delete_unknown_instance(&id).await.unwrap();
    let left = yard.provider.instances();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].id, known);
}

#[tokio::test]
async fn a_place_that_does_not_say_what_it_has_is_named() {
    let yard = Yard::new().await;
    yard.provider.set_reachable(false);
    let unknown = yard.service.unknown_instances().await.unwrap();
    assert_eq!(unknown.unreachable, ["fake:1"]);
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
async fn what_cannot_be_paused_again_runs_until_its_time_is_over() {
    let yard = Yard::new().await;
    let sandbox = yard.create().await;
    let id = sandbox.id.as_str();
    yard.service.pause(&alice(), id, None).await.unwrap();
    let instance = sandbox.provider_id.as_deref().unwrap();
    yard.provider.resume(instance).await.unwrap();
    yard.provider.fail_next(
        sandyard_provider::Verb::Pause,
        sandyard_provider::ProviderErrorKind::Unsupported,
    );
    yard.pass(31_000).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Running);
    yard.pass(HOUR_MS + 1).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Paused);
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
    for _ in 0..3 {
        let gone = deleted(&yard).await;
        yard.provider.add_orphan(gone);
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
async fn orphans_that_hang_hold_up_neither_each_other_nor_timers() {
    let yard = Yard::new().await;
    let sandbox = yard.create().await;
    for _ in 0..3 {
        let gone = deleted(&yard).await;
        yard.provider.add_orphan(gone);
    }
    yard.pass(1).await;
    let timers = yard.service.timers();
    timers.clear("sandbox", sandbox.id.as_str()).await.unwrap();
    let gate = yard.provider.hold(sandyard_provider::Verb::Delete);
    yard.service.flush().await;
    yard.clock.advance_ms(301_000);
    let service = yard.service.clone();
    let sweep = tokio::spawn(async move { service.sweep().await });
    gate.reached_by(3).await;
    let without = yard.store.sandboxes_without_timer("fake:1").await.unwrap();
    assert_eq!(without, [], "the timer is set while they hang");
    gate.release();
    sweep.await.unwrap().unwrap();
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
