//! Time: idle, pause, retention, delete.

use std::time::Duration;

use sandyard_core::{ErrorKind, SandboxStatus};
use sandyard_provider::{ProviderErrorKind, Verb};
use sandyard_service::{Expiry, TimeoutAction, TimeoutRequest};

use crate::harness::{HOUR_MS, TestEnv, alice, request_with_timeout};

#[tokio::test]
async fn an_idle_sandbox_is_paused_at_its_own_time_then_deleted_and_its_story_stays() {
    let env = TestEnv::new().await;
    let sandbox = env
        .service
        .create(&alice(), request_with_timeout(60))
        .await
        .unwrap();
    env.pass(59_000).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Running);
    env.pass(2_000).await;
    let paused = env.row(&sandbox.id).await;
    assert_eq!(paused.status, SandboxStatus::Paused);
    assert_eq!(paused.reason.as_deref(), Some("not used for 1m"));
    env.pass(7 * 24 * HOUR_MS + 1).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Deleted);
    assert!(env.provider.instances().is_empty());
    assert_eq!(
        env.event_kinds(&sandbox.id).await,
        ["created", "running", "paused", "deleting", "deleted"]
    );
    let row = env.row(&sandbox.id).await;
    assert!(row.access_token.is_empty(), "secrets go with the sandbox");
}

#[tokio::test]
async fn one_that_cannot_be_paused_is_stopped_instead_of_running_on() {
    let env = TestEnv::new().await;
    let sandbox = env
        .service
        .create(&alice(), request_with_timeout(60))
        .await
        .unwrap();
    env.provider
        .fail_next(Verb::Pause, ProviderErrorKind::Unsupported);
    env.pass(61_000).await;
    let row = env.row(&sandbox.id).await;
    assert_eq!(row.status, SandboxStatus::Stopped);
    assert_eq!(row.reason.as_deref(), Some("not used for 1m"));
    assert_eq!(env.provider.count(Verb::Stop), 1);
    let woken = env.service.connect(&alice(), sandbox.id.as_str()).await;
    assert_eq!(woken.unwrap().status, SandboxStatus::Running);
}

#[tokio::test]
async fn use_puts_the_pause_off_by_the_sandboxs_own_time_not_the_default() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let name = sandbox.id.as_str();
    let timeout = TimeoutRequest {
        timeout: Duration::from_secs(100),
        action: None,
        expiry: None,
    };
    env.service
        .set_timeout(&alice(), name, timeout)
        .await
        .unwrap();
    for _ in 0..5 {
        env.pass(90_000).await;
        drop(env.service.live(&alice(), name).await.unwrap());
    }
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Running);
    env.pass(101_000).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Paused);
}

#[tokio::test]
async fn what_is_in_use_is_not_idle_however_long_it_takes() {
    let env = TestEnv::new().await;
    let sandbox = env
        .service
        .create(&alice(), request_with_timeout(10))
        .await
        .unwrap();
    let live = env
        .service
        .live(&alice(), sandbox.id.as_str())
        .await
        .unwrap();
    for _ in 0..20 {
        env.pass(9_000).await;
    }
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Running);
    drop(live);
    env.pass(9_000).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Running);
    env.pass(2_000).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Paused);
}

#[tokio::test]
async fn an_action_of_delete_deletes_at_once() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let timeout = TimeoutRequest {
        timeout: Duration::from_secs(5),
        action: Some(TimeoutAction::Delete),
        expiry: None,
    };
    let name = sandbox.id.as_str();
    let changed = env
        .service
        .set_timeout(&alice(), name, timeout)
        .await
        .unwrap();
    assert_eq!(
        env.service.expires_ms(&changed),
        Some(env.clock.now_ms() + 5_000)
    );
    env.pass(6_000).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Deleted);
}

#[tokio::test]
async fn a_fixed_time_ends_whatever_happens() {
    let env = TestEnv::new().await;
    let request = sandyard_service::CreateRequest {
        expiry: Some(Expiry::Fixed),
        ..request_with_timeout(60)
    };
    let sandbox = env.service.create(&alice(), request).await.unwrap();
    let live = env
        .service
        .live(&alice(), sandbox.id.as_str())
        .await
        .unwrap();
    env.pass(61_000).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Paused);
    drop(live);
}

#[tokio::test]
async fn a_time_out_of_range_is_refused() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    for seconds in [0, 86_401] {
        let request = TimeoutRequest {
            timeout: Duration::from_secs(seconds),
            action: None,
            expiry: None,
        };
        let result = env
            .service
            .set_timeout(&alice(), sandbox.id.as_str(), request)
            .await;
        assert_eq!(result.unwrap_err().kind, ErrorKind::Invalid);
    }
}

#[tokio::test]
async fn a_failed_pause_is_repeated_and_then_reported_as_dead() {
    let env = TestEnv::new().await;
    let sandbox = env
        .service
        .create(&alice(), request_with_timeout(10))
        .await
        .unwrap();
    env.provider
        .fail_next(Verb::Pause, ProviderErrorKind::Failed);
    env.pass(11_000).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Running);
    env.pass(5_000).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Paused);

    let stubborn = env
        .service
        .create(&alice(), request_with_timeout(10))
        .await
        .unwrap();
    for _ in 0..20 {
        env.provider
            .fail_next(Verb::Pause, ProviderErrorKind::Failed);
        env.pass(400_000).await;
    }
    let dead = env.service.dead_timers().await.unwrap();
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0].subject, stubborn.id.as_str());
    assert!(dead[0].last_error.is_some());
    assert!(
        env.service
            .revive_timer(stubborn.id.as_str())
            .await
            .unwrap()
    );
    // The failures that were not used up are still in the way of the first tries.
    for _ in 0..20 {
        env.pass(400_000).await;
    }
    assert_eq!(env.row(&stubborn.id).await.status, SandboxStatus::Paused);
}

#[tokio::test]
async fn a_sandbox_woken_at_the_end_of_its_retention_is_not_deleted() {
    for _ in 0..20 {
        let env = TestEnv::new().await;
        let sandbox = env.create().await;
        let name = sandbox.id.to_string();
        env.service.pause(&alice(), &name, None).await.unwrap();
        env.clock.advance_ms(7 * 24 * HOUR_MS + 1);
        let service = env.service.clone();
        let waker = tokio::spawn(async move { service.live(&alice(), &name).await });
        env.service.sweep().await.unwrap();
        let is_live = waker.await.unwrap().is_ok();
        let status = env.row(&sandbox.id).await.status;
        assert_eq!(is_live, status == SandboxStatus::Running, "{status}");
    }
}
