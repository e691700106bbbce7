//! Making sandboxes: once, whole, within limits.

use sandyard_core::{Caller, ErrorKind, SandboxStatus};
use sandyard_provider::{ProviderErrorKind, Verb};
use sandyard_service::{CreateRequest, PartialLimits, ServiceSettings};

use crate::harness::{TestEnv, alice, user};

#[tokio::test]
async fn a_new_sandbox_runs_and_its_instance_carries_its_id() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    assert_eq!(sandbox.status, SandboxStatus::Running);
    assert_eq!(sandbox.owner, "alice");
    assert!(sandbox.claim.is_none() && sandbox.started_ms.is_some());
    let instances = env.provider.instances();
    assert_eq!(instances.len(), 1);
    assert_eq!(instances[0].sandbox_id.as_ref(), Some(&sandbox.id));
    assert_eq!(sandbox.provider_id.as_ref(), Some(&instances[0].id));
    assert_eq!(env.event_kinds(&sandbox.id).await, ["created", "running"]);
}

#[tokio::test]
async fn a_failed_create_leaves_nothing_and_takes_no_place() {
    let env = TestEnv::with(ServiceSettings {
        max_sandboxes_per_user: 1,
        ..ServiceSettings::default()
    })
    .await;
    for kind in [
        ProviderErrorKind::NoCapacity,
        ProviderErrorKind::Failed,
        ProviderErrorKind::NotFound,
        ProviderErrorKind::Invalid,
    ] {
        env.provider.fail_next(Verb::Create, kind);
        let result = env.service.create(&alice(), CreateRequest::default()).await;
        assert!(result.is_err(), "{kind:?}");
        assert!(env.provider.instances().is_empty());
    }
    assert_eq!(env.create().await.status, SandboxStatus::Running);
}

#[tokio::test]
async fn an_instance_whose_answer_got_lost_is_removed() {
    let env = TestEnv::new().await;
    env.provider
        .lose_next_answer(Verb::Create, ProviderErrorKind::TimedOut);
    let error = env
        .service
        .create(&alice(), CreateRequest::default())
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::TimedOut);
    assert_eq!(env.provider.instances().len(), 1);
    env.pass(5_000).await;
    assert!(env.provider.instances().is_empty());
}

#[tokio::test]
async fn the_same_key_makes_one_sandbox_however_often_it_comes() {
    let env = TestEnv::new().await;
    let request = CreateRequest {
        idempotency_key: Some("k1".to_owned()),
        ..CreateRequest::default()
    };
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (service, request) = (env.service.clone(), request.clone());
        tasks.spawn(async move { service.create(&alice(), request).await.unwrap().id });
    }
    let mut ids = tasks.join_all().await;
    ids.dedup();
    assert_eq!(ids.len(), 1);
    assert_eq!(env.provider.instances().len(), 1);

    let other = CreateRequest {
        template: Some("other".to_owned()),
        ..request.clone()
    };
    let error = env.service.create(&alice(), other).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    let bobs = env.service.create(&user("bob"), request).await.unwrap();
    assert_ne!(bobs.id, ids[0], "keys belong to their owner");
}

#[tokio::test]
async fn a_key_whose_create_failed_can_be_used_again() {
    let env = TestEnv::new().await;
    let request = CreateRequest {
        idempotency_key: Some("k1".to_owned()),
        ..CreateRequest::default()
    };
    env.provider
        .fail_next(Verb::Create, ProviderErrorKind::Failed);
    assert!(env.service.create(&alice(), request.clone()).await.is_err());
    let sandbox = env.service.create(&alice(), request).await.unwrap();
    assert_eq!(sandbox.status, SandboxStatus::Running);
}

#[tokio::test]
async fn the_last_place_goes_to_one() {
    let env = TestEnv::with(ServiceSettings {
        max_sandboxes_per_user: 3,
        ..ServiceSettings::default()
    })
    .await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let service = env.service.clone();
        tasks.spawn(async move { service.create(&alice(), CreateRequest::default()).await });
    }
    let results = tasks.join_all().await;
    let refused: Vec<_> = results
        .iter()
        .filter_map(|result| result.as_ref().err())
        .collect();
    assert_eq!(refused.len(), 17);
    assert!(
        refused.iter().all(|error| {
            error.kind == ErrorKind::QuotaExceeded && error.retry_after_s.is_some()
        })
    );
    assert_eq!(env.provider.instances().len(), 3);
}

#[tokio::test]
async fn limits_out_of_range_are_refused_before_anything_is_made() {
    let env = TestEnv::new().await;
    let request = CreateRequest {
        limits: PartialLimits {
            memory_bytes: Some(1),
            ..PartialLimits::default()
        },
        ..CreateRequest::default()
    };
    let error = env.service.create(&alice(), request).await.unwrap_err();
    assert_eq!(
        (error.kind, error.field),
        (ErrorKind::Invalid, Some("limits"))
    );
    assert_eq!(env.provider.count(Verb::Create), 0);
}

#[tokio::test]
async fn only_an_admin_makes_sandboxes_for_others() {
    let env = TestEnv::new().await;
    let request = CreateRequest {
        owner: Some("bob".to_owned()),
        ..CreateRequest::default()
    };
    let own = env.service.create(&alice(), request.clone()).await.unwrap();
    assert_eq!(own.owner, "alice");
    let bobs = env.service.create(&Caller::local(), request).await.unwrap();
    assert_eq!(bobs.owner, "bob");
    let error = env
        .service
        .inspect(&alice(), bobs.id.as_str())
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::SandboxNotFound);
    assert!(
        env.service
            .inspect(&user("bob"), bobs.id.as_str())
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn a_caller_who_hangs_up_leaves_a_whole_sandbox() {
    let env = TestEnv::new().await;
    let gate = env.provider.hold(Verb::Create);
    let service = env.service.clone();
    let caller =
        tokio::spawn(async move { service.create(&alice(), CreateRequest::default()).await });
    gate.reached_by(1).await;
    caller.abort();
    gate.release();
    let id = loop {
        if let Some(instance) = env.provider.instances().pop() {
            break instance.sandbox_id.unwrap();
        }
        tokio::task::yield_now().await;
    };
    while env.row(&id).await.status != SandboxStatus::Running {
        tokio::task::yield_now().await;
    }
}
