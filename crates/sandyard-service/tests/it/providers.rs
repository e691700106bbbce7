//! Several providers at once: who makes what, and what each can do.

use std::time::Duration;

use sandyard_core::{Caller, ErrorKind, SandboxStatus};
use sandyard_provider::{ProviderErrorKind, Verb};
use sandyard_service::{CreateRequest, MountRequest, ServiceSettings};

use crate::harness::{alice, until, user};
use crate::several::{Several, from, with};

fn archive(text: &str) -> sandyard_provider::ArchiveReader {
    Box::pin(std::io::Cursor::new(text.as_bytes().to_vec()))
}

async fn import(yard: &Several, provider: Option<&str>, name: &str) {
    let imported = yard
        .service
        .import_template(&Caller::local(), provider, name, archive("tar"))
        .await;
    assert_eq!(
        imported.expect("the yard works").provider,
        provider.unwrap_or("embedded")
    );
}

#[tokio::test]
async fn whoever_asks_chooses_and_else_the_default_makes_it() {
    let yard = Several::new(ServiceSettings::default()).await;
    for (request, provider, memory_bytes) in [
        (CreateRequest::default(), "embedded", 1 << 30),
        (with("docker"), "docker", 2 << 30),
        (with("e2b"), "e2b", 3 << 30),
        (from("docker/base"), "docker", 2 << 30),
        (from("e2b/"), "e2b", 3 << 30),
        (with(""), "embedded", 1 << 30),
    ] {
        let sandbox = yard.create(request).await.unwrap();
        assert_eq!(sandbox.provider, provider);
        assert_eq!(sandbox.location, format!("{provider}:1"));
        assert_eq!(sandbox.limits.memory_bytes, memory_bytes);
        assert_eq!(sandbox.template, "base");
    }
    assert_eq!(yard.instances(), [2, 2, 2]);
}

#[tokio::test]
async fn an_unknown_provider_is_refused_with_the_names_of_those_there_are() {
    let yard = Several::new(ServiceSettings::default()).await;
    let error = yard.create(with("kubernetes")).await.unwrap_err();
    assert_eq!(
        (error.kind, error.field),
        (ErrorKind::Invalid, Some("provider"))
    );
    for name in ["kubernetes", "embedded", "docker", "e2b"] {
        let named = format!("`{name}`");
        assert!(error.message.contains(&named), "{}", error.message);
    }
    // What is no provider's name in front of a template is a part of it.
    let error = yard.create(from("library/python")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    assert!(
        error.message.contains("library/python"),
        "{}",
        error.message
    );
    assert_eq!(yard.instances(), [0, 0, 0]);
}

#[tokio::test]
async fn a_template_written_with_its_provider_is_that_providers() {
    let yard = Several::new(ServiceSettings::default()).await;
    import(&yard, Some("docker"), "python-3.12").await;
    let sandbox = yard.create(from("docker/python-3.12")).await.unwrap();
    assert_eq!(
        (sandbox.provider.as_str(), sandbox.template.as_str()),
        ("docker", "python-3.12")
    );
    let error = yard.create(from("docker/org/python:3.12")).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    assert!(error.message.contains("`org/python:3.12`"), "{error}");
    // Whoever names a provider means the template as it is written.
    let literal = CreateRequest {
        template: Some("docker/base".to_owned()),
        ..with("docker")
    };
    let error = yard.create(literal).await.unwrap_err();
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
    let yard = Several::new(settings).await;
    import(&yard, None, "house").await;
    import(&yard, Some("docker"), "python").await;
    let sandbox = yard.create(from("python")).await.unwrap();
    assert_eq!(sandbox.provider, "docker");
    // The request's word is stronger.
    let request = CreateRequest {
        provider: Some("embedded".to_owned()),
        ..from("python")
    };
    let error = yard.create(request).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound, "it is not there");
    let error = yard.create(from("gone")).await.unwrap_err();
    assert_eq!(
        (error.kind, error.field),
        (ErrorKind::Invalid, Some("template"))
    );
    // The operator's default is the default provider's alone.
    let house = yard.create(CreateRequest::default()).await.unwrap();
    assert_eq!(house.template, "house");
    let other = yard.create(with("docker")).await.unwrap();
    assert_eq!(other.template, "base");
}

#[tokio::test]
async fn a_sandbox_is_where_its_volumes_are() {
    let yard = Several::new(ServiceSettings::default()).await;
    yard.service.create_volume(&alice(), "data").await.unwrap();
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
    let error = yard.create(request).await.unwrap_err();
    assert_eq!(
        (error.kind, error.field),
        (ErrorKind::Invalid, Some("provider"))
    );
    assert!(error.message.contains("`embedded`"), "{}", error.message);
    let request = CreateRequest {
        mounts: mounts(),
        ..with("embedded")
    };
    assert_eq!(yard.create(request).await.unwrap().provider, "embedded");
}

#[tokio::test]
async fn a_sandbox_of_a_snapshot_is_where_that_is() {
    let yard = Several::new(ServiceSettings::default()).await;
    let original = yard.create(with("docker")).await.unwrap();
    let made = yard
        .service
        .snapshot(&alice(), original.id.as_str(), "kept")
        .await
        .unwrap();
    assert_eq!(made.provider, "docker");
    let named = yard
        .service
        .snapshot_as(&alice(), original.id.as_str(), Some("state"))
        .await
        .unwrap();
    for text in ["kept", "state", "docker/kept", &named.name] {
        let sandbox = yard.create(from(text)).await.unwrap();
        assert_eq!(sandbox.provider, "docker", "{text}");
    }
    let request = CreateRequest {
        template: Some("kept".to_owned()),
        ..with("e2b")
    };
    let error = yard.create(request).await.unwrap_err();
    assert_eq!(
        (error.kind, error.field),
        (ErrorKind::Invalid, Some("provider"))
    );
    assert!(error.message.contains("`docker`"), "{}", error.message);
    // Somebody else's neither leads there nor is found there.
    for request in [from("kept"), from("docker/kept")] {
        let error = yard.service.create(&user("bob"), request).await;
        assert_eq!(error.unwrap_err().kind, ErrorKind::NotFound);
    }
    let snapshots = yard.service.snapshots(&alice(), None).await.unwrap();
    assert_eq!(snapshots.len(), 2);
    yard.service
        .remove_template(&alice(), None, "kept")
        .await
        .unwrap();
    let error = yard.create(from("docker/kept")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
}

#[tokio::test]
async fn forks_stay_with_their_provider_and_leave_no_template() {
    let yard = Several::new(ServiceSettings::default()).await;
    let original = yard.create(with("e2b")).await.unwrap();
    let forks = yard
        .service
        .fork_many(&alice(), original.id.as_str(), Default::default(), 3)
        .await;
    for fork in forks.unwrap() {
        assert_eq!(fork.unwrap().provider, "e2b");
    }
    assert_eq!(yard.instances(), [0, 0, 4]);
    let templates = yard.service.templates(&alice()).await.unwrap();
    assert!(
        templates
            .templates
            .iter()
            .all(|template| template.info.name == "base")
    );
}

#[tokio::test]
async fn templates_are_listed_with_their_provider_and_the_silent_are_named() {
    let yard = Several::new(ServiceSettings::default()).await;
    import(&yard, Some("docker"), "python").await;
    let listed = async || {
        let list = yard.service.templates(&alice()).await.unwrap();
        let templates = list.templates.into_iter();
        let names: Vec<String> = templates
            .map(|one| format!("{}/{}", one.provider, one.info.name))
            .collect();
        (names, list.silent)
    };
    let (names, silent) = listed().await;
    assert_eq!(
        names,
        ["embedded/base", "docker/base", "docker/python", "e2b/base"]
    );
    assert!(silent.is_empty());
    yard.docker.set_reachable(false);
    let (names, silent) = listed().await;
    assert_eq!(names, ["embedded/base", "e2b/base"]);
    assert_eq!(silent[0].0, "docker");
    for fake in [&yard.embedded, &yard.e2b] {
        fake.set_reachable(false);
    }
    let error = yard.service.templates(&alice()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    yard.docker.set_reachable(true);
    let removed = yard
        .service
        .remove_template(&Caller::local(), Some("docker"), "python")
        .await;
    removed.unwrap();
    let error = yard
        .service
        .remove_template(&Caller::local(), Some("nobody"), "python")
        .await;
    assert_eq!(error.unwrap_err().field, Some("provider"));
}

#[tokio::test]
async fn a_key_means_the_same_provider() {
    let yard = Several::new(ServiceSettings::default()).await;
    let keyed = |request: CreateRequest| CreateRequest {
        idempotency_key: Some("k".to_owned()),
        ..request
    };
    let first = yard.create(keyed(with("docker"))).await.unwrap();
    let again = yard.create(keyed(with("docker"))).await.unwrap();
    assert_eq!(first.id, again.id);
    for other in [with("e2b"), CreateRequest::default()] {
        let error = yard.create(keyed(other)).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Conflict);
    }
}

#[tokio::test]
async fn what_a_provider_cannot_do_is_said_and_not_tried() {
    let yard = Several::new(ServiceSettings::default()).await;
    let plain = yard.docker.clone().with_info(|info| {
        info.capabilities = Default::default();
    });
    let fakes = [yard.embedded.clone(), plain, yard.e2b.clone()];
    let settings = ServiceSettings::default();
    let yard = Several::over(yard.store.clone(), yard.clock.clone(), fakes, settings).await;
    let sandbox = yard.create(with("docker")).await.unwrap();
    let (service, alice, name) = (&yard.service, alice(), sandbox.id.as_str());
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
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Running);
    let can = service.capabilities_of(&sandbox).unwrap();
    assert!(!can.can_pause);
    service.delete(&alice, name).await.unwrap();
}

#[tokio::test]
async fn health_is_known_without_asking_and_comes_back() {
    let yard = Several::new(ServiceSettings::default()).await;
    let reachable = || {
        let providers = yard.service.providers();
        assert!(providers[0].is_default && !providers[1].is_default);
        providers
            .iter()
            .map(|provider| provider.condition.is_reachable)
            .collect::<Vec<_>>()
    };
    yard.notice().await;
    assert_eq!(reachable(), [true, true, true]);
    yard.docker.set_reachable(false);
    yard.service.check_providers().await;
    assert_eq!(reachable(), [true, true, true], "once may be bad luck");
    yard.service.check_providers().await;
    assert_eq!(reachable(), [true, false, true]);
    let docker = &yard.service.providers()[1];
    assert!(docker.condition.reason.is_some() && docker.condition.since_ms.is_some());
    yard.docker.set_reachable(true);
    yard.service.check_providers().await;
    assert_eq!(reachable(), [true, true, true]);
}

#[tokio::test]
async fn a_provider_that_was_never_reached_has_no_place_and_is_in_nobodys_way() {
    let yard = Several::with_fallback().await;
    let lost = yard
        .embedded
        .clone()
        .with_info(|info| info.location.clear());
    let fakes = [lost, yard.docker.clone(), yard.e2b.clone()];
    let settings = yard.service.settings().clone();
    let yard = Several::over(yard.store.clone(), yard.clock.clone(), fakes, settings).await;
    assert!(!yard.service.providers()[0].condition.is_reachable);
    let error = yard.create(with("embedded")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    let sandbox = yard.create(CreateRequest::default()).await.unwrap();
    assert_eq!(sandbox.provider, "docker");
    let nodes = yard.service.nodes().await.unwrap();
    let own = nodes.iter().find(|node| node.id == yard.service.node_id());
    assert_eq!(own.unwrap().locations, ["docker:1", "e2b:1"]);
    yard.pass(3_610_000).await;
    assert_eq!(yard.row(&sandbox.id).await.status, SandboxStatus::Paused);
}

#[tokio::test]
async fn a_provider_that_hangs_holds_up_no_other() {
    let yard = Several::new(ServiceSettings {
        reconcile_every: Duration::from_millis(20),
        ..ServiceSettings::default()
    })
    .await;
    let stuck = yard.create(with("docker")).await.unwrap();
    let lively = yard.create(with("e2b")).await.unwrap();
    let gates = [
        Verb::List,
        Verb::Pause,
        Verb::SetNetwork,
        Verb::CheckHealth,
        Verb::KeepReady,
        Verb::Templates,
        Verb::Create,
    ]
    .map(|verb| yard.docker.hold(verb));
    let service = yard.service.clone();
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
    let rounds = yard.e2b.count(Verb::List);
    until(|| yard.e2b.count(Verb::List) > rounds + 2).await;
    yard.e2b.vanish(lively.provider_id.as_deref().unwrap());
    while yard.row(&lively.id).await.status != SandboxStatus::Stopped {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    yard.clock.advance_ms(3_601_000);
    let other = yard.create(with("embedded")).await.unwrap();
    yard.clock.advance_ms(3_601_000);
    while yard.row(&other.id).await.status != SandboxStatus::Paused {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(yard.row(&stuck.id).await.status, SandboxStatus::Running);
    assert_eq!(yard.docker.count(Verb::List), 1);
    drop(gates);
    stop.send(()).unwrap();
    running.await.unwrap();
}

#[tokio::test]
async fn strangers_of_one_place_are_not_forgotten_for_those_of_another() {
    let yard = Several::new(ServiceSettings::default()).await;
    for fake in [&yard.embedded, &yard.docker, &yard.e2b] {
        let gone = yard.create(CreateRequest::default()).await.unwrap();
        let deleted = yard.service.delete(&alice(), gone.id.as_str()).await;
        deleted.unwrap();
        fake.add_orphan(gone.id);
    }
    yard.pass(1).await;
    yard.pass(31_000).await;
    assert_eq!(yard.instances(), [1, 1, 1], "too early");
    yard.e2b
        .fail_next(Verb::Delete, ProviderErrorKind::Unavailable);
    yard.pass(301_000).await;
    assert_eq!(yard.instances(), [0, 0, 1]);
    yard.pass(31_000).await;
    assert_eq!(yard.instances(), [0, 0, 0]);
}
