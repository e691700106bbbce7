//! Pause, wake, stop, delete: in any order, by many at once.

use std::time::Duration;

use sandyard_core::{ErrorKind, SandboxStatus};
use sandyard_provider::{ProviderErrorKind, Verb};
use sandyard_service::{CreateRequest, Expiry, NotRunning, TimeoutRequest, WakePolicy};

use crate::harness::{TestEnv, alice, until, user};

#[tokio::test]
async fn a_hundred_requests_wake_a_sandbox_once() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let name = sandbox.id.to_string();
    env.service.pause(&alice(), &name, None).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..100 {
        let (service, name) = (env.service.clone(), name.clone());
        tasks.spawn(async move {
            match number % 3 {
                0 => service.connect(&alice(), &name).await.map(drop),
                1 => service.resume(&alice(), &name).await.map(drop),
                _ => service.live(&alice(), &name).await.map(drop),
            }
        });
    }
    for result in tasks.join_all().await {
        result.unwrap();
    }
    assert_eq!(env.provider.count(Verb::Resume), 1);
    let woken = env.event_kinds(&sandbox.id).await;
    assert_eq!(woken.iter().filter(|kind| *kind == "woken").count(), 1);
}

#[tokio::test]
async fn pausing_twice_and_resuming_twice_is_fine() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let name = sandbox.id.as_str();
    for _ in 0..2 {
        let paused = env
            .service
            .pause(&alice(), name, Some("lunch".into()))
            .await
            .unwrap();
        assert_eq!(paused.status, SandboxStatus::Paused);
        assert_eq!(paused.reason.as_deref(), Some("lunch"));
    }
    for _ in 0..2 {
        let running = env.service.resume(&alice(), name).await.unwrap();
        assert_eq!(
            (running.status, running.reason),
            (SandboxStatus::Running, None)
        );
    }
    assert_eq!(env.provider.count(Verb::Pause), 1);
}

#[tokio::test]
async fn a_sandbox_whose_processes_died_while_paused_starts_from_its_files() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let name = sandbox.id.as_str();
    env.service.pause(&alice(), name, None).await.unwrap();
    env.provider.vanish(sandbox.provider_id.as_deref().unwrap());
    let live = env.service.live(&alice(), name).await.unwrap();
    assert_eq!(live.sandbox.status, SandboxStatus::Running);
    assert_eq!(env.provider.count(Verb::Start), 1);
}

#[tokio::test]
async fn a_stopped_sandbox_starts_with_the_next_request() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let name = sandbox.id.as_str();
    let stopped = env.service.stop(&alice(), name).await.unwrap();
    assert_eq!(stopped.status, SandboxStatus::Stopped);
    env.service.stop(&alice(), name).await.unwrap();
    assert_eq!(
        env.service
            .live(&alice(), name)
            .await
            .unwrap()
            .sandbox
            .status,
        SandboxStatus::Running
    );
}

#[tokio::test]
async fn a_request_for_a_sandbox_without_auto_resume_gets_a_conflict() {
    let env = TestEnv::new().await;
    let request = CreateRequest {
        is_auto_resumed: Some(false),
        ..Default::default()
    };
    let sandbox = env.service.create(&alice(), request).await.unwrap();
    let name = sandbox.id.as_str();
    env.service.pause(&alice(), name, None).await.unwrap();
    assert_eq!(
        env.service.live(&alice(), name).await.unwrap_err().kind,
        ErrorKind::Conflict
    );
    env.service.connect(&alice(), name).await.unwrap();
    env.service.live(&alice(), name).await.unwrap();
}

#[tokio::test]
async fn a_request_during_a_pause_or_stop_wakes_only_what_it_may() {
    for verb in [Verb::Pause, Verb::Stop] {
        let env = TestEnv::new().await;
        let sandbox = env
            .make(CreateRequest {
                is_auto_resumed: Some(false),
                expiry: Some(Expiry::Fixed),
                ..CreateRequest::default()
            })
            .await;
        let name = sandbox.id.to_string();
        let ends_now = TimeoutRequest {
            timeout: Duration::ZERO,
            action: None,
            expiry: Some(Expiry::Fixed),
        };
        let caller = alice();
        let ending = env.service.set_timeout(&caller, &name, ends_now);
        let row = ending.await.unwrap();
        let gate = env.provider.hold(verb);
        let (service, own_name) = (env.service.clone(), name.clone());
        let going_down = tokio::spawn(async move {
            match verb {
                Verb::Pause => service.pause(&alice(), &own_name, None).await,
                _ => service.stop(&alice(), &own_name).await,
            }
        });
        until(|| env.provider.count(verb) == 1).await;
        // The row is from before the claim, as that of a request that was on its way.
        env.clock.advance_ms(1000);
        let mut requests = tokio::task::JoinSet::new();
        for policy in [WakePolicy::Never, WakePolicy::Wake] {
            let (service, row) = (env.service.clone(), row.clone());
            requests.spawn(async move { service.live_for(row, policy).await });
        }
        let now_ms = env.clock.now_ms();
        while env.row(&sandbox.id).await.last_activity_ms < now_ms {
            tokio::task::yield_now().await;
        }
        gate.release();
        let status = going_down.await.unwrap().unwrap().status;
        for outcome in requests.join_all().await {
            assert!(matches!(outcome, Err(NotRunning::Asleep)), "{outcome:?}");
        }
        assert_eq!(env.row(&sandbox.id).await.status, status);
        assert_eq!(env.provider.count(Verb::Resume), 0);
        assert_eq!(env.provider.count(Verb::Start), 0);
        env.service.connect(&alice(), &name).await.unwrap();
    }
}

#[tokio::test]
async fn deleting_twice_succeeds_and_what_is_deleted_is_not_found() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let name = sandbox.id.as_str();
    for _ in 0..2 {
        let sandbox = env.service.delete(&alice(), name).await.unwrap();
        assert_eq!(sandbox.status, SandboxStatus::Deleted);
    }
    for error in [
        env.service
            .live(&alice(), name)
            .await
            .map(drop)
            .unwrap_err(),
        env.service
            .connect(&alice(), name)
            .await
            .map(drop)
            .unwrap_err(),
        env.service
            .pause(&alice(), name, None)
            .await
            .map(drop)
            .unwrap_err(),
        env.service
            .delete(&alice(), "nosuchsandbox")
            .await
            .map(drop)
            .unwrap_err(),
        env.service
            .delete(&user("bob"), name)
            .await
            .map(drop)
            .unwrap_err(),
    ] {
        assert_eq!(error.kind, ErrorKind::SandboxNotFound);
    }
    assert!(!env.events(&sandbox.id).await.is_empty());
}

#[tokio::test]
async fn a_delete_that_failed_is_finished_later_and_the_row_waits_for_it() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    env.provider
        .fail_next(Verb::Delete, ProviderErrorKind::Unavailable);
    let error = env
        .service
        .delete(&alice(), sandbox.id.as_str())
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Deleting);
    assert_eq!(env.provider.instances().len(), 1);
    env.pass(20_000).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Deleted);
    assert!(env.provider.instances().is_empty());
}

#[tokio::test]
async fn everything_at_once_on_one_sandbox_ends_in_one_state() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let name = sandbox.id.to_string();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..60 {
        let (service, name) = (env.service.clone(), name.clone());
        tasks.spawn(async move {
            let _ = match number % 5 {
                0 => service.pause(&alice(), &name, None).await.map(drop),
                1 => service.resume(&alice(), &name).await.map(drop),
                2 => service.stop(&alice(), &name).await.map(drop),
                3 => service.live(&alice(), &name).await.map(drop),
                _ if number == 59 => service.delete(&alice(), &name).await.map(drop),
                _ => service.connect(&alice(), &name).await.map(drop),
            };
        });
    }
    tasks.join_all().await;
    let row = env.row(&sandbox.id).await;
    assert_eq!((row.status, row.claim), (SandboxStatus::Deleted, None));
    assert!(env.provider.instances().is_empty());
}
