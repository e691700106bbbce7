//! Another provider when the first choice cannot.

use sandyard_core::{Caller, ErrorKind, SandboxId, SandboxStatus};
use sandyard_provider::prelude::*;
use sandyard_provider::{InstanceSpec, ProviderErrorKind, Verb};
use sandyard_service::{CreateRequest, MountRequest, Sandbox, ServiceSettings};
use sandyard_store::model::{NewEvent, NewSandbox, SandboxFilter, SandboxPatch, TimerPlan};

use crate::harness::alice;
use crate::multi_provider::{MultiProvider, fallback, from, with};

const UNABLE: [ProviderErrorKind; 3] = [
    ProviderErrorKind::NoCapacity,
    ProviderErrorKind::Unavailable,
    ProviderErrorKind::TimedOut,
];

#[tokio::test]
async fn the_next_makes_it_when_the_first_cannot() {
    for kind in UNABLE {
        let env = MultiProvider::with_fallback().await;
        env.embedded.fail_next(Verb::Create, kind);
        let sandbox = env.create(CreateRequest::default()).await.unwrap();
        assert_eq!(
            (sandbox.provider.as_str(), sandbox.location.as_str()),
            ("docker", "docker:1")
        );
        assert_eq!(sandbox.status, SandboxStatus::Running);
        assert_eq!(sandbox.limits.memory_bytes, 2 << 30, "that provider's own");
        assert_eq!(env.instances(), [0, 1, 0]);
        let events = env.events(&sandbox.id).await;
        let kinds: Vec<_> = events.iter().map(|event| event.kind.as_str()).collect();
        assert_eq!(kinds, ["created", "create_moved", "running"]);
        let moved = &events[1].data;
        assert_eq!(
            (&moved["from"], &moved["to"]),
            (&"embedded".into(), &"docker".into())
        );
        assert!(moved["reason"].is_string() && moved["detail"].is_string());
        // It lives there: it is paused by that place's timer and woken there.
        env.pass(3_601_000).await;
        assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Paused);
        let name = sandbox.id.as_str();
        env.service.connect(&alice(), name).await.unwrap();
        env.service.delete(&alice(), name).await.unwrap();
        assert_eq!(env.instances(), [0, 0, 0]);
    }
}

#[tokio::test]
async fn a_refusal_is_the_last_word_of_the_first_choice() {
    for kind in [
        ProviderErrorKind::Invalid,
        ProviderErrorKind::NotFound,
        ProviderErrorKind::Failed,
        ProviderErrorKind::Conflict,
        ProviderErrorKind::Unsupported,
    ] {
        let env = MultiProvider::with_fallback().await;
        env.embedded.fail_next(Verb::Create, kind);
        assert!(
            env.create(CreateRequest::default()).await.is_err(),
            "{kind:?}"
        );
        assert_eq!(env.docker.count(Verb::Create), 0, "{kind:?}");
    }
}

#[tokio::test]
async fn what_is_bound_to_a_place_is_made_nowhere_else() {
    let env = MultiProvider::with_fallback().await;
    env.service.create_volume(&alice(), "data").await.unwrap();
    let original = env.create(with("embedded")).await.unwrap();
    let snapshot = env
        .service
        .snapshot(&alice(), original.id.as_str(), "kept")
        .await;
    snapshot.unwrap();
    let mounted = CreateRequest {
        mounts: vec![MountRequest {
            volume: "data".to_owned(),
            path: "/data".to_owned(),
        }],
        ..CreateRequest::default()
    };
    for request in [
        with("embedded"),
        from("embedded/base"),
        from("kept"),
        mounted,
    ] {
        env.embedded
            .fail_next(Verb::Create, ProviderErrorKind::NoCapacity);
        let error = env.create(request).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NoCapacity);
    }
    assert_eq!(env.instances(), [1, 0, 0]);
}

#[tokio::test]
async fn when_every_provider_fails_the_first_error_names_all_that_were_tried() {
    let env = MultiProvider::with_fallback().await;
    env.embedded
        .fail_next(Verb::Create, ProviderErrorKind::NoCapacity);
    env.docker
        .fail_next(Verb::Create, ProviderErrorKind::Invalid);
    env.e2b.fail_next(Verb::Create, ProviderErrorKind::TimedOut);
    let error = env.create(CreateRequest::default()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NoCapacity);
    for name in ["`docker`", "`e2b`"] {
        assert!(error.message.contains(name), "{}", error.message);
    }
    let calls = env.e2b.calls();
    let id: SandboxId = calls
        .iter()
        .find(|call| call.verb == Verb::Create)
        .unwrap()
        .subject
        .parse()
        .unwrap();
    // The last one may have made it after all: that is looked into, there.
    env.pass(2_000).await;
    assert_eq!(env.row(&id).await.status, SandboxStatus::Deleted);
    assert_eq!(env.instances(), [0, 0, 0]);
    env.create(CreateRequest::default()).await.unwrap();
}

#[tokio::test]
async fn those_who_cannot_be_reached_are_passed_over_unless_all_are() {
    let env = MultiProvider::with_fallback().await;
    env.embedded.set_reachable(false);
    env.docker.set_reachable(false);
    env.notice().await;
    let sandbox = env.create(CreateRequest::default()).await.unwrap();
    assert_eq!(sandbox.provider, "e2b");
    assert_eq!(env.embedded.count(Verb::Create), 0);
    assert_eq!(env.docker.count(Verb::Create), 0);
    let events = env.events(&sandbox.id).await;
    assert_eq!(events[0].data["instead_of"], "embedded");
    // A request that names a provider gets the answer of that provider.
    let error = env.create(with("docker")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    env.e2b.set_reachable(false);
    env.notice().await;
    let error = env.create(CreateRequest::default()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert_eq!(env.embedded.count(Verb::Create), 1, "in case it is back");
    for fake in [&env.embedded, &env.docker, &env.e2b] {
        fake.set_reachable(true);
    }
    // Nobody has looked since, and all are asked: the first one answers.
    let sandbox = env.create(CreateRequest::default()).await.unwrap();
    assert_eq!(sandbox.provider, "embedded");
}

#[tokio::test]
async fn what_a_lost_answer_left_behind_is_removed_and_the_sandbox_stays() {
    for kind in [ProviderErrorKind::TimedOut, ProviderErrorKind::Unavailable] {
        let env = MultiProvider::with_fallback().await;
        env.embedded.lose_next_answer(Verb::Create, kind);
        let sandbox = env.create(CreateRequest::default()).await.unwrap();
        // Both places call their instance the same.
        assert_eq!(env.embedded.instances()[0].id, env.docker.instances()[0].id);
        env.pass(31_000).await;
        assert_eq!(env.instances(), [1, 1, 0], "too early");
        env.pass(301_000).await;
        assert_eq!(env.instances(), [0, 1, 0]);
        assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Running);
    }
}

#[tokio::test]
async fn what_both_lost_is_removed_from_both() {
    let env = MultiProvider::new(fallback(["docker"])).await;
    for fake in [&env.embedded, &env.docker] {
        fake.lose_next_answer(Verb::Create, ProviderErrorKind::TimedOut);
    }
    let error = env.create(CreateRequest::default()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::TimedOut);
    assert_eq!(env.instances(), [1, 1, 0]);
    env.pass(2_000).await;
    assert_eq!(env.instances(), [1, 0, 0], "where the row is, at once");
    env.pass(301_000).await;
    assert_eq!(env.instances(), [0, 0, 0]);
}

#[tokio::test]
async fn a_repetition_finds_what_another_provider_made() {
    let env = MultiProvider::with_fallback().await;
    let request = CreateRequest {
        idempotency_key: Some("k".to_owned()),
        ..CreateRequest::default()
    };
    env.embedded
        .fail_next(Verb::Create, ProviderErrorKind::NoCapacity);
    let first = env.create(request.clone()).await.unwrap();
    assert_eq!(first.provider, "docker");
    // The first choice is there again, or is passed over: the request is the same.
    let repeated = env.create(request.clone()).await.unwrap();
    assert_eq!(repeated.id, first.id);
    env.embedded.set_reachable(false);
    env.notice().await;
    let repeated = env.create(request).await.unwrap();
    assert_eq!(repeated.id, first.id);
    assert_eq!(env.instances(), [0, 1, 0]);
}

#[tokio::test]
async fn a_sandbox_that_moved_takes_one_place() {
    let env = MultiProvider::new(ServiceSettings {
        max_sandboxes_per_user: 2,
        ..fallback(["docker"])
    })
    .await;
    env.embedded
        .fail_next(Verb::Create, ProviderErrorKind::NoCapacity);
    env.create(CreateRequest::default()).await.unwrap();
    env.create(CreateRequest::default()).await.unwrap();
    let error = env.create(CreateRequest::default()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::QuotaExceeded);
    assert_eq!(env.instances(), [1, 1, 0]);
}

#[tokio::test]
async fn who_cannot_give_what_was_asked_for_is_passed_over() {
    let env = MultiProvider::with_fallback().await;
    let small = env.docker.clone().with_info(|info| {
        info.max_limits.memory_bytes = 4 << 30;
    });
    let fakes = [env.embedded.clone(), small, env.e2b.clone()];
    let settings = env.service.settings().clone();
    let env = MultiProvider::over(env.store.clone(), env.clock.clone(), fakes, settings).await;
    let mut request = CreateRequest::default();
    request.limits.memory_bytes = Some(8 << 30);
    env.embedded
        .fail_next(Verb::Create, ProviderErrorKind::NoCapacity);
    let sandbox = env.create(request).await.unwrap();
    assert_eq!(sandbox.provider, "e2b");
    assert_eq!(sandbox.limits.memory_bytes, 8 << 30);
    assert_eq!(env.docker.count(Verb::Create), 0);
}

#[tokio::test]
async fn a_template_that_only_some_have_is_made_by_them() {
    let env = MultiProvider::with_fallback().await;
    for provider in ["embedded", "e2b"] {
        let archive: sandyard_provider::ArchiveReader =
            Box::pin(std::io::Cursor::new(b"tar".to_vec()));
        let admin = Caller::local();
        let imported = env
            .service
            .import_template(&admin, Some(provider), "python", archive);
        imported.await.unwrap();
    }
    env.embedded
        .fail_next(Verb::Create, ProviderErrorKind::NoCapacity);
    let sandbox = env.create(from("python")).await.unwrap();
    assert_eq!(
        (sandbox.provider.as_str(), sandbox.template.as_str()),
        ("e2b", "python")
    );
    assert_eq!(env.events(&sandbox.id).await.len(), 4, "it moved twice");
}

/// A row as a server leaves it that dies after it has moved on to `docker`.
async fn moved_by_the_dead(env: &MultiProvider) -> Sandbox {
    let model = env
        .create(CreateRequest::default())
        .await
        .expect("the test environment works");
    env.service
        .delete(&alice(), model.id.as_str())
        .await
        .expect("the test environment works");
    let id = SandboxId::from_random([7; 20]);
    let row = Sandbox {
        id: id.clone(),
        provider_id: None,
        started_ms: None,
        ..model
    };
    let due_ms = env.clock.now_ms() + 30_000;
    let new = NewSandbox {
        sandbox: row.clone(),
        holder: "dead.node/1".to_owned(),
        claimed_until_ms: due_ms,
    };
    let event = NewEvent {
        sandbox_id: id.clone(),
        owner: "alice".to_owned(),
        at_ms: env.clock.now_ms(),
        kind: "created".to_owned(),
        actor: "alice".to_owned(),
        data: serde_json::json!({}),
    };
    let timer = TimerPlan::Set { due_ms };
    let inserted = env.store.insert_sandbox(&new, None, None, &event, timer);
    inserted.await.expect("the test environment works");
    let patch = SandboxPatch {
        provider: Some("docker".to_owned()),
        location: Some("docker:1".to_owned()),
        ..SandboxPatch::default()
    };
    let moved = env
        .store
        .commit_sandbox(&id, "dead.node/1", &patch, &[], timer, false);
    moved
        .await
        .expect("the test environment works")
        .expect("the test environment works")
}

fn spec(row: &Sandbox) -> InstanceSpec {
    InstanceSpec {
        sandbox_id: row.id.clone(),
        template: row.template.clone(),
        limits: row.limits.clone(),
        env: row.env.clone(),
        access_token: row.access_token.clone(),
        hostname: None,
        network: sandyard_core::NetworkPolicy::default(),
        mounts: Vec::new(),
        project: None,
        metadata: row.metadata.clone(),
        is_restricted: false,
    }
}

#[tokio::test]
async fn died_between_the_move_and_the_next_provider() {
    // What the first made without having said so, and what the next made before the end came.
    for (first, next) in [(false, false), (true, false), (false, true), (true, true)] {
        let env = MultiProvider::with_fallback().await;
        let row = moved_by_the_dead(&env).await;
        if first {
            env.embedded.create(&spec(&row)).await.unwrap();
        }
        if next {
            env.docker.create(&spec(&row)).await.unwrap();
        }
        let later = env.second_server(fallback(["docker", "e2b"])).await;
        later.pass(31_000).await;
        later.pass(301_000).await;
        let status = later.row(&row.id).await.status;
        match next {
            true => assert_eq!(status, SandboxStatus::Running),
            false => assert_eq!(status, SandboxStatus::Deleted),
        }
        assert_eq!(later.instances(), [0, usize::from(next), 0]);
    }
}

#[tokio::test]
async fn a_claim_that_was_lost_meanwhile_makes_nothing_elsewhere() {
    let env = MultiProvider::with_fallback().await;
    let gate = env.embedded.hold(Verb::Create);
    env.embedded
        .fail_next(Verb::Create, ProviderErrorKind::TimedOut);
    let service = env.service.clone();
    let slow = tokio::spawn(async move { service.create(&alice(), Default::default()).await });
    gate.reached_by(1).await;
    // Its claim ends as if its server had been asleep, and another ends the create. On a busy machine the timer may be postponed before.
    let other = env.second_server(fallback(["docker", "e2b"])).await;
    let creating = SandboxFilter {
        statuses: vec![SandboxStatus::Creating],
        ..SandboxFilter::default()
    };
    while env.store.count_matching(&creating).await.unwrap() > 0 {
        env.clock.advance_ms(31_000);
        other.service.sweep().await.unwrap();
    }
    gate.release();
    let error = slow.await.unwrap().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Busy);
    assert_eq!(env.docker.count(Verb::Create), 0);
    assert_eq!(env.instances(), [0, 0, 0]);
}
