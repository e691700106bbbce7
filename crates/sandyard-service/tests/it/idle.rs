//! Time: idle, pause, retention, delete.

use std::time::Duration;

use sandyard_core::{ErrorKind, SandboxStatus};
use sandyard_provider::{ProviderErrorKind, Verb};
use sandyard_service::{Expiry, TimeoutAction, TimeoutRequest};

use crate::harness::{HOUR_MS, Yard, alice, request_with_timeout};

#[tokio::test]
async fn an_idle_sandbox_is_paused_at_its_own_time_then_deleted_and_its_story_stays() {
    let yard = Yard::new().await;
    let sandbox = yard
        .service
        .create(&alice(), request_with_timeout(60))
        .await
        .unwrap();
    yard.pass(59_000).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Running);
    yard.pass(2_000).await;
    let paused = yard.row(&sandbox.id).await;
    assert_eq!(paused.status, SandboxStatus::Paused);
    assert_eq!(paused.reason.as_deref(), Some("not used for 60 s"));
    yard.pass(7 * 24 * HOUR_MS + 1).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Deleted);
    assert!(yard.provider.instances().is_empty());
    assert_eq!(
        yard.event_kinds(&sandbox.id).await,
        ["created", "running", "paused", "deleting", "deleted"]
    );
    let row = yard.row(&sandbox.id).await;
    assert!(row.access_token.is_empty(), "secrets go with the sandbox");
}

#[tokio::test]
async fn one_that_cannot_be_paused_is_stopped_instead_of_running_on() {
    let yard = Yard::new().await;
    let sandbox = yard
        .service
        .create(&alice(), request_with_timeout(60))
        .await
        .unwrap();
    yard.provider
        .fail_next(Verb::Pause, ProviderErrorKind::Unsupported);
    yard.pass(61_000).await;
    let row = yard.row(&sandbox.id).await;
    assert_eq!(row.status, SandboxStatus::Stopped);
    assert_eq!(row.reason.as_deref(), Some("not used for 60 s"));
    assert_eq!(yard.provider.count(Verb::Stop), 1);
    let woken = yard.service.connect(&alice(), sandbox.id.as_str()).await;
    assert_eq!(woken.unwrap().status, SandboxStatus::Running);
}

#[tokio::test]
async fn use_puts_the_pause_off_by_the_sandboxs_own_time_not_the_default() {
    let yard = Yard::new().await;
    let sandbox = yard.create().await;
    let name = sandbox.id.as_str();
    let timeout = TimeoutRequest {
        timeout: Duration::from_secs(100),
        action: None,
        expiry: None,
    };
    yard.service
        .set_timeout(&alice(), name, timeout)
        .await
        .unwrap();
    for _ in 0..5 {
        yard.pass(90_000).await;
        drop(yard.service.live(&alice(), name).await.unwrap());
    }
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Running);
    yard.pass(101_000).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Paused);
}

#[tokio::test]
async fn what_is_in_use_is_not_idle_however_long_it_takes() {
    let yard = Yard::new().await;
    let sandbox = yard
        .service
        .create(&alice(), request_with_timeout(10))
        .await
        .unwrap();
    let live = yard
        .service
        .live(&alice(), sandbox.id.as_str())
        .await
        .unwrap();
    for _ in 0..20 {
        yard.pass(9_000).await;
    }
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Running);
    drop(live);
    yard.pass(9_000).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Running);
    yard.pass(2_000).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Paused);
}

#[tokio::test]
async fn an_action_of_delete_deletes_at_once() {
    let yard = Yard::new().await;
    let sandbox = yard.create().await;
    let timeout = TimeoutRequest {
        timeout: Duration::from_secs(5),
        action: Some(TimeoutAction::Delete),
        expiry: None,
    };
    let name = sandbox.id.as_str();
    let changed = yard
        .service
        .set_timeout(&alice(), name, timeout)
        .await
        .unwrap();
    assert_eq!(
        yard.service.expires_ms(&changed),
        Some(yard.clock.now_ms() + 5_000)
    );
    yard.pass(6_000).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Deleted);
}

#[tokio::test]
async fn a_fixed_time_ends_whatever_happens() {
    let yard = Yard::new().await;
    let request = sandyard_service::CreateRequest {
        expiry: Some(Expiry::Fixed),
        ..request_with_timeout(60)
    };
    let sandbox = yard.service.create(&alice(), request).await.unwrap();
    let live = yard
        .service
        .live(&alice(), sandbox.id.as_str())
        .await
        .unwrap();
    yard.pass(61_000).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Paused);
    drop(live);
}

#[tokio::test]
async fn a_time_out_of_range_is_refused() {
    let yard = Yard::new().await;
    let sandbox = yard.create().await;
    for seconds in [0, 86_401] {
        let request = TimeoutRequest {
            timeout: Duration::from_secs(seconds),
            action: None,
            expiry: None,
        };
        let result = yard
            .service
            .set_timeout(&alice(), sandbox.id.as_str(), request)
            .await;
        assert_eq!(result.unwrap_err().kind, ErrorKind::Invalid);
    }
}

#[tokio::test]
async fn a_failed_pause_is_tried_again_and_then_given_up_for_all_to_see() {
    let yard = Yard::new().await;
    let sandbox = yard
        .service
        .create(&alice(), request_with_timeout(10))
        .await
        .unwrap();
    yard.provider
        .fail_next(Verb::Pause, ProviderErrorKind::Failed);
    yard.pass(11_000).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Running);
    yard.pass(5_000).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Paused);

    let stubborn = yard
        .service
        .create(&alice(), request_with_timeout(10))
        .await
        .unwrap();
    for _ in 0..20 {
        yard.provider
            .fail_next(Verb::Pause, ProviderErrorKind::Failed);
        yard.pass(400_000).await;
    }
    let dead = yard.service.dead_timers().await.unwrap();
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0].subject, stubborn.id.as_str());
    assert!(dead[0].last_error.is_some());
    assert!(
        yard.service
            .revive_timer(stubborn.id.as_str())
            .await
            .unwrap()
    );
    // The failures that were not used up are still in the way of the first tries.
    for _ in 0..20 {
        yard.pass(400_000).await;
    }
    assert_eq!(yard.row(&stubborn.id).await.status, SandboxStatus::Paused);
}

#[tokio::test]
async fn a_sandbox_woken_at_the_end_of_its_retention_is_not_deleted() {
    for _ in 0..20 {
        let yard = Yard::new().await;
        let sandbox = yard.create().await;
        let name = sandbox.id.to_string();
        yard.service.pause(&alice(), &name, None).await.unwrap();
        yard.clock.advance_ms(7 * 24 * HOUR_MS + 1);
        let service = yard.service.clone();
        let waker = tokio::spawn(async move { service.live(&alice(), &name).await });
        yard.service.sweep().await.unwrap();
        let is_live = waker.await.unwrap().is_ok();
        let status = yard.row(&sandbox.id).await.status;
        assert_eq!(is_live, status == SandboxStatus::Running, "{status}");
    }
}
