//! What should be against what is.

use sandyard_core::{ErrorKind, SandboxId, SandboxState, SandboxStatus};
use sandyard_provider::prelude::*;

use crate::harness::{HOUR_MS, TestEnv, alice};

#[tokio::test]
async fn vanished_processes_are_noticed_with_the_reason_and_come_back_on_request() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    env.provider.vanish(sandbox.provider_id.as_deref().unwrap());
    env.pass(31_000).await;
    let row = env.row(&sandbox.id).await;
    assert_eq!(row.status, SandboxStatus::Stopped);
    assert!(row.reason.is_some());
    assert!(
        env.event_kinds(&sandbox.id)
            .await
            .contains(&"vanished".to_owned())
    );
    let live = env
        .service
        .live(&alice(), sandbox.id.as_str())
        .await
        .unwrap();
    assert_eq!(live.sandbox.status, SandboxStatus::Running);
}

#[tokio::test]
async fn a_lost_instance_is_an_error_that_says_why_and_can_be_deleted() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    env.provider.lose(sandbox.provider_id.as_deref().unwrap());
    env.pass(31_000).await;
    let row = env.row(&sandbox.id).await;
    assert_eq!(row.status, SandboxStatus::Error);
    assert!(row.reason.is_some());
    assert!(
        env.service
            .live(&alice(), sandbox.id.as_str())
            .await
            .is_err()
    );
    env.service
        .delete(&alice(), sandbox.id.as_str())
        .await
        .unwrap();
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Deleted);
}

#[tokio::test]
async fn what_a_deleted_sandbox_left_goes_after_a_grace_period() {
    let env = TestEnv::new().await;
    env.provider.add_foreign_instance();
    let sandbox = env.create().await;
    let deleted_id = deleted(&env).await;
    env.provider.add_orphan(deleted_id);
    env.pass(31_000).await;
    assert_eq!(env.provider.instances().len(), 3, "too early");
    env.pass(301_000).await;
    let remaining = env.provider.instances();
    assert_eq!(remaining.len(), 2);
    assert!(
        remaining
            .iter()
            .any(|instance| instance.sandbox_id.as_ref() == Some(&sandbox.id))
    );
}

/// The id of a sandbox that was.
async fn deleted(env: &TestEnv) -> SandboxId {
    let sandbox = env.create().await;
    let id = sandbox.id.as_str();
    let deleted = env.service.delete(&alice(), id).await;
    deleted.expect("the test environment works");
    sandbox.id
}

#[tokio::test]
async fn what_a_restored_database_does_not_know_is_listed_and_not_removed() {
    let made_later = SandboxId::from_random([9; 20]);
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let id = env.provider.add_orphan(made_later.clone());
    for _ in 0..3 {
        env.pass(301_000).await;
    }
    assert_eq!(env.provider.instances().len(), 2, "it is somebody's");
    let unknown = env.service.unknown_instances().await.unwrap();
    assert!(unknown.unreachable.is_empty());
    let [one] = &unknown.instances[..] else {
        panic!("{unknown:?}");
    };
    assert_eq!((&one.instance.id, one.provider.as_str()), (&id, "fake"));
    assert_eq!(one.instance.sandbox_id, Some(made_later));
    // Only those can be removed so.
    let own_instance = sandbox.provider_id.as_deref().unwrap();
    let refused = env.service.delete_unknown_instance(own_instance).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::NotFound);
    env.service.delete_unknown_instance(&id).await.unwrap();
    let remaining = env.provider.instances();
    assert_eq!(remaining.len(), 1);
    assert_eq!(remaining[0].id, own_instance);
}

#[tokio::test]
async fn a_place_that_does_not_say_what_it_has_is_named() {
    let env = TestEnv::new().await;
    env.provider.set_reachable(false);
    let unknown = env.service.unknown_instances().await.unwrap();
    assert_eq!(unknown.unreachable, ["fake:1"]);
}

#[tokio::test]
async fn an_instance_that_drifted_gets_the_state_of_its_row_again() {
    let env = TestEnv::new().await;
    let running = env.create().await;
    let paused = env.create().await;
    env.service
        .pause(&alice(), paused.id.as_str(), None)
        .await
        .unwrap();
    env.provider
        .pause(running.provider_id.as_deref().unwrap())
        .await
        .unwrap();
    env.provider
        .resume(paused.provider_id.as_deref().unwrap())
        .await
        .unwrap();
    env.pass(31_000).await;
    let state = |id: &Option<String>| {
        let id = id.clone().unwrap();
        let all = env.provider.instances();
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
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let id = sandbox.id.as_str();
    env.service.pause(&alice(), id, None).await.unwrap();
    let instance = sandbox.provider_id.as_deref().unwrap();
    env.provider.resume(instance).await.unwrap();
    env.provider.fail_next(
        sandyard_provider::Verb::Pause,
        sandyard_provider::ProviderErrorKind::Unsupported,
    );
    env.pass(31_000).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Running);
    env.pass(HOUR_MS + 1).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Paused);
}

#[tokio::test]
async fn an_unreachable_provider_changes_nothing() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    env.provider.set_reachable(false);
    env.service.sweep().await.unwrap();
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Running);
    env.provider.set_reachable(true);
    env.pass(HOUR_MS / 2).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Running);
}

#[tokio::test]
async fn an_instance_that_comes_back_repairs_its_sandbox() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let id = sandbox.provider_id.clone().unwrap();
    let spec = env.provider.spec_of(&id).unwrap();
    env.provider.lose(&id);
    env.pass(31_000).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Error);
    // A second instance for the same sandbox is not the one the row means, and goes.
    env.provider.create(&spec).await.unwrap();
    env.pass(31_000).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Error);
    env.pass(301_000).await;
    assert!(env.provider.instances().is_empty());
}

#[tokio::test]
async fn an_orphan_that_cannot_be_removed_does_not_protect_the_others() {
    let env = TestEnv::new().await;
    for _ in 0..3 {
        let deleted_id = deleted(&env).await;
        env.provider.add_orphan(deleted_id);
    }
    env.pass(1).await;
    env.provider.fail_next(
        sandyard_provider::Verb::Delete,
        sandyard_provider::ProviderErrorKind::Failed,
    );
    env.pass(301_000).await;
    assert_eq!(env.provider.instances().len(), 1);
}

#[tokio::test]
async fn orphans_that_hang_hold_up_neither_each_other_nor_timers() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    for _ in 0..3 {
        let deleted_id = deleted(&env).await;
        env.provider.add_orphan(deleted_id);
    }
    env.pass(1).await;
    let timers = env.service.timers();
    timers.clear("sandbox", sandbox.id.as_str()).await.unwrap();
    let gate = env.provider.hold(sandyard_provider::Verb::Delete);
    env.service.flush().await;
    env.clock.advance_ms(301_000);
    let service = env.service.clone();
    let sweep = tokio::spawn(async move { service.sweep().await });
    gate.reached_by(3).await;
    let without = env.store.sandboxes_without_timer("fake:1").await.unwrap();
    assert_eq!(without, [], "the timer is set while they hang");
    gate.release();
    sweep.await.unwrap().unwrap();
    assert_eq!(env.provider.instances().len(), 1);
}

#[tokio::test]
async fn a_timer_that_was_lost_is_set_again() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let timers = env.service.timers();
    timers.clear("sandbox", sandbox.id.as_str()).await.unwrap();
    env.pass(31_000).await;
    env.pass(HOUR_MS).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Paused);
}
