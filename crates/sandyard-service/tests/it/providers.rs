//! MultiProvider providers at once: who makes what, and what each can do.

use std::time::Duration;

use sandyard_core::{Caller, ErrorKind, SandboxStatus};
use sandyard_provider::{ProviderErrorKind, Verb};
use sandyard_service::{CreateRequest, MountRequest, ServiceSettings};

use crate::harness::{alice, until, user};
use crate::multi_provider::{MultiProvider, from, with};

fn archive(text: &str) -> sandyard_provider::ArchiveReader {
    Box::pin(std::io::Cursor::new(text.as_bytes().to_vec()))
}

async fn import(env: &MultiProvider, provider: Option<&str>, name: &str) {
    let imported = env
        .service
        .import_template(&Caller::local(), provider, name, archive("tar"))
        .await;
    assert_eq!(
        imported.expect("the test environment works").provider,
        provider.unwrap_or("embedded")
    );
}

#[tokio::test]
async fn the_requested_provider_is_used_or_else_the_default() {
    let env = MultiProvider::new(ServiceSettings::default()).await;
    for (request, provider, memory_bytes) in [
        (CreateRequest::default(), "embedded", 1 << 30),
        (with("docker"), "docker", 2 << 30),
        (with("e2b"), "e2b", 3 << 30),
        (from("docker/base"), "docker", 2 << 30),
        (from("e2b/"), "e2b", 3 << 30),
        (with(""), "embedded", 1 << 30),
    ] {
        let sandbox = env.create(request).await.unwrap();
        assert_eq!(sandbox.provider, provider);
        assert_eq!(sandbox.location, format!("{provider}:1"));
        assert_eq!(sandbox.limits.memory_bytes, memory_bytes);
        assert_eq!(sandbox.template, "base");
    }
    assert_eq!(env.instances(), [2, 2, 2]);
}

#[tokio::test]
async fn an_unknown_provider_is_refused_with_the_names_of_those_there_are() {
    let env = MultiProvider::new(ServiceSettings::default()).await;
    let error = env.create(with("kubernetes")).await.unwrap_err();
    assert_eq!(
        (error.kind, error.field),
        (ErrorKind::Invalid, Some("provider"))
    );
    for name in ["kubernetes", "embedded", "docker", "e2b"] {
        let named = format!("`{name}`");
        assert!(error.message.contains(&named), "{}", error.message);
    }
    // What is no provider's name in front of a template is a part of it.
    let error = env.create(from("library/python")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    assert!(
        error.message.contains("library/python"),
        "{}",
        error.message
    );
    assert_eq!(env.instances(), [0, 0, 0]);
}

#[tokio::test]
async fn a_template_written_with_its_provider_is_that_providers() {
    let env = MultiProvider::new(ServiceSettings::default()).await;
    import(&env, Some("docker"), "python-3.12").await;
    let sandbox = env.create(from("docker/python-3.12")).await.unwrap();
    assert_eq!(
        (sandbox.provider.as_str(), sandbox.template.as_str()),
        ("docker", "python-3.12")
    );
    let error = env.create(from("docker/org/python:3.12")).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    assert!(error.message.contains("`org/python:3.12`"), "{error}");
    // With a provider in the request, the template's name is taken as it is written.
    let literal = CreateRequest {
        template: Some("docker/base".to_owned()),
        ..with("docker")
    };
    let error = env.create(literal).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
}

#[tokio::test]
async fn the_settings_say_whose_a_template_is() {
    let settings = ServiceSettings {
        default_template: Some("house".to_owned()),
        template_providers: [("python", "docker"), ("gone", "kubernetes")]
            .map(|(template, provider)| (template.to_owned(), provider.to_owned()))
            .into(),
        ..ServiceSettings::default()
    };
    let env = MultiProvider::new(settings).await;
    import(&env, None, "house").await;
    import(&env, Some("docker"), "python").await;
    let sandbox = env.create(from("python")).await.unwrap();
    assert_eq!(sandbox.provider, "docker");
    // The request's word is stronger.
    let request = CreateRequest {
        provider: Some("embedded".to_owned()),
        ..from("python")
    };
    let error = env.create(request).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound, "it is not there");
    let error = env.create(from("gone")).await.unwrap_err();
    assert_eq!(
        (error.kind, error.field),
        (ErrorKind::Invalid, Some("template"))
    );
    // The operator's default is the default provider's alone.
    let default = env.create(CreateRequest::default()).await.unwrap();
    assert_eq!(default.template, "house");
    let other = env.create(with("docker")).await.unwrap();
    assert_eq!(other.template, "base");
}

#[tokio::test]
async fn a_sandbox_is_where_its_volumes_are() {
    let env = MultiProvider::new(ServiceSettings::default()).await;
    env.service.create_volume(&alice(), "data").await.unwrap();
    let mounts = || {
        vec![MountRequest {
            volume: "data".to_owned(),
            path: "/data".to_owned(),
        }]
    };
    let request = CreateRequest {
        mounts: mounts(),
        ..with("docker")
    };
    let error = env.create(request).await.unwrap_err();
    assert_eq!(
        (error.kind, error.field),
        (ErrorKind::Invalid, Some("provider"))
    );
    assert!(error.message.contains("`embedded`"), "{}", error.message);
    let request = CreateRequest {
        mounts: mounts(),
        ..with("embedded")
    };
    assert_eq!(env.create(request).await.unwrap().provider, "embedded");
}

#[tokio::test]
async fn a_sandbox_of_a_snapshot_is_where_that_is() {
    let env = MultiProvider::new(ServiceSettings::default()).await;
    let original = env.create(with("docker")).await.unwrap();
    let made = env
        .service
        .snapshot(&alice(), original.id.as_str(), "kept")
        .await
        .unwrap();
    assert_eq!(made.provider, "docker");
    let named = env
        .service
        .snapshot_as(&alice(), original.id.as_str(), Some("state"))
        .await
        .unwrap();
    for text in ["kept", "state", "docker/kept", &named.name] {
        let sandbox = env.create(from(text)).await.unwrap();
        assert_eq!(sandbox.provider, "docker", "{text}");
    }
    let request = CreateRequest {
        template: Some("kept".to_owned()),
        ..with("e2b")
    };
    let error = env.create(request).await.unwrap_err();
    assert_eq!(
        (error.kind, error.field),
        (ErrorKind::Invalid, Some("provider"))
    );
    assert!(error.message.contains("`docker`"), "{}", error.message);
    // Somebody else's neither leads there nor is found there.
    for request in [from("kept"), from("docker/kept")] {
        let error = env.service.create(&user("bob"), request).await;
        assert_eq!(error.unwrap_err().kind, ErrorKind::NotFound);
    }
    let snapshots = env.service.snapshots(&alice(), None).await.unwrap();
    assert_eq!(snapshots.len(), 2);
    env.service
        .remove_template(&alice(), None, "kept")
        .await
        .unwrap();
    let error = env.create(from("docker/kept")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
}

#[tokio::test]
async fn forks_stay_with_their_provider_and_leave_no_template() {
    let env = MultiProvider::new(ServiceSettings::default()).await;
    let original = env.create(with("e2b")).await.unwrap();
    let forks = env
        .service
        .fork_many(&alice(), original.id.as_str(), Default::default(), 3)
        .await;
    for fork in forks.unwrap() {
        assert_eq!(fork.unwrap().provider, "e2b");
    }
    assert_eq!(env.instances(), [0, 0, 4]);
    let templates = env.service.templates(&alice()).await.unwrap();
    assert!(
        templates
            .templates
            .iter()
            .all(|template| template.info.name == "base")
    );
}

#[tokio::test]
async fn templates_are_listed_with_their_provider_and_the_silent_are_named() {
    let env = MultiProvider::new(ServiceSettings::default()).await;
    import(&env, Some("docker"), "python").await;
    let listed = async || {
        let list = env.service.templates(&alice()).await.unwrap();
        let templates = list.templates.into_iter();
        let names: Vec<String> = templates
            .map(|one| format!("{}/{}", one.provider, one.info.name))
            .collect();
        (names, list.unavailable)
    };
    let (names, silent) = listed().await;
    assert_eq!(
        names,
        ["embedded/base", "docker/base", "docker/python", "e2b/base"]
    );
    assert!(silent.is_empty());
    env.docker.set_reachable(false);
    let (names, silent) = listed().await;
    assert_eq!(names, ["embedded/base", "e2b/base"]);
    assert_eq!(silent[0].0, "docker");
    for fake in [&env.embedded, &env.e2b] {
        fake.set_reachable(false);
    }
    let error = env.service.templates(&alice()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    env.docker.set_reachable(true);
    let removed = env
        .service
        .remove_template(&Caller::local(), Some("docker"), "python")
        .await;
    removed.unwrap();
    let error = env
        .service
        .remove_template(&Caller::local(), Some("nobody"), "python")
        .await;
    assert_eq!(error.unwrap_err().field, Some("provider"));
}

#[tokio::test]
async fn a_key_means_the_same_provider() {
    let env = MultiProvider::new(ServiceSettings::default()).await;
    let keyed = |request: CreateRequest| CreateRequest {
        idempotency_key: Some("k".to_owned()),
        ..request
    };
    let first = env.create(keyed(with("docker"))).await.unwrap();
    let repeated = env.create(keyed(with("docker"))).await.unwrap();
    assert_eq!(first.id, repeated.id);
    for other in [with("e2b"), CreateRequest::default()] {
        let error = env.create(keyed(other)).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Conflict);
    }
}

#[tokio::test]
async fn what_a_provider_cannot_do_is_said_and_not_tried() {
    let env = MultiProvider::new(ServiceSettings::default()).await;
    let plain = env.docker.clone().with_info(|info| {
        info.capabilities = Default::default();
    });
    let fakes = [env.embedded.clone(), plain, env.e2b.clone()];
    let settings = ServiceSettings::default();
    let env = MultiProvider::over(env.store.clone(), env.clock.clone(), fakes, settings).await;
    let sandbox = env.create(with("docker")).await.unwrap();
    let (service, alice, name) = (&env.service, alice(), sandbox.id.as_str());
    let errors = [
        service.pause(&alice, name, None).await.unwrap_err(),
        service.stop(&alice, name).await.unwrap_err(),
        service.snapshot(&alice, name, "kept").await.unwrap_err(),
        service
            .fork(&alice, name, Default::default())
            .await
            .unwrap_err(),
        service.diff(&alice, name).await.unwrap_err(),
        service
            .usage_history(&alice, name, 0, i64::MAX)
            .await
            .unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
        assert!(error.message.contains("`docker`"), "{error}");
    }
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Running);
    let can = service.capabilities_of(&sandbox).unwrap();
    assert!(!can.can_pause);
    service.delete(&alice, name).await.unwrap();
}

#[tokio::test]
async fn health_is_known_without_asking_and_comes_back() {
    let env = MultiProvider::new(ServiceSettings::default()).await;
    let reachable = || {
        let providers = env.service.providers();
        assert!(providers[0].is_default && !providers[1].is_default);
        providers
            .iter()
            .map(|provider| provider.condition.is_reachable)
            .collect::<Vec<_>>()
    };
    env.notice().await;
    assert_eq!(reachable(), [true, true, true]);
    env.docker.set_reachable(false);
    env.service.check_providers().await;
    assert_eq!(reachable(), [true, true, true], "once may be bad luck");
    env.service.check_providers().await;
    assert_eq!(reachable(), [true, false, true]);
    let docker = &env.service.providers()[1];
    assert!(docker.condition.reason.is_some() && docker.condition.since_ms.is_some());
    env.docker.set_reachable(true);
    env.service.check_providers().await;
    assert_eq!(reachable(), [true, true, true]);
}

#[tokio::test]
async fn a_provider_that_was_never_reached_has_no_location_and_blocks_no_other() {
    let env = MultiProvider::with_fallback().await;
    let lost = env.embedded.clone().with_info(|info| info.location.clear());
    let fakes = [lost, env.docker.clone(), env.e2b.clone()];
    let settings = env.service.settings().clone();
    let env = MultiProvider::over(env.store.clone(), env.clock.clone(), fakes, settings).await;
    assert!(!env.service.providers()[0].condition.is_reachable);
    let error = env.create(with("embedded")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    let sandbox = env.create(CreateRequest::default()).await.unwrap();
    assert_eq!(sandbox.provider, "docker");
    let nodes = env.service.nodes().await.unwrap();
    let own = nodes.iter().find(|node| node.id == env.service.node_id());
    assert_eq!(own.unwrap().locations, ["docker:1", "e2b:1"]);
    env.pass(3_610_000).await;
    assert_eq!(env.row(&sandbox.id).await.status, SandboxStatus::Paused);
}

#[tokio::test]
async fn a_provider_that_hangs_holds_up_no_other() {
    let env = MultiProvider::new(ServiceSettings {
        reconcile_every: Duration::from_millis(20),
        ..ServiceSettings::default()
    })
    .await;
    let stuck = env.create(with("docker")).await.unwrap();
    let lively = env.create(with("e2b")).await.unwrap();
    let gates = [
        Verb::List,
        Verb::Pause,
        Verb::SetNetwork,
        Verb::CheckHealth,
        Verb::KeepReady,
        Verb::Templates,
        Verb::Create,
    ]
    .map(|verb| env.docker.hold(verb));
    let service = env.service.clone();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(async move {
        service
            .run(async {
                let _ = stopped.await;
            })
            .await;
    });
    gates[0].reached_by(1).await;
    // Reconciling, timers and grants of the others go on, more than once.
    let lists_before = env.e2b.count(Verb::List);
    until(|| env.e2b.count(Verb::List) > lists_before + 2).await;
    env.e2b.vanish(lively.provider_id.as_deref().unwrap());
    while env.row(&lively.id).await.status != SandboxStatus::Stopped {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    env.clock.advance_ms(3_601_000);
    let other = env.create(with("embedded")).await.unwrap();
    env.clock.advance_ms(3_601_000);
    while env.row(&other.id).await.status != SandboxStatus::Paused {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(env.row(&stuck.id).await.status, SandboxStatus::Running);
    assert_eq!(env.docker.count(Verb::List), 1);
    drop(gates);
    stop.send(()).unwrap();
    running.await.unwrap();
}

#[tokio::test]
async fn orphans_of_one_location_are_not_forgotten_for_those_of_another() {
    let env = MultiProvider::new(ServiceSettings::default()).await;
    for fake in [&env.embedded, &env.docker, &env.e2b] {
        let sandbox = env.create(CreateRequest::default()).await.unwrap();
        let deleted = env.service.delete(&alice(), sandbox.id.as_str()).await;
        deleted.unwrap();
        fake.add_orphan(sandbox.id);
    }
    env.pass(1).await;
    env.pass(31_000).await;
    assert_eq!(env.instances(), [1, 1, 1], "too early");
    env.e2b
        .fail_next(Verb::Delete, ProviderErrorKind::Unavailable);
    env.pass(301_000).await;
    assert_eq!(env.instances(), [0, 0, 1]);
    env.pass(31_000).await;
    assert_eq!(env.instances(), [0, 0, 0]);
}
