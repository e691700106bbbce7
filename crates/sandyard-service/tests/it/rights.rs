//! What users may ask of providers who are not admins.

use sandyard_core::{Caller, ErrorKind};
use sandyard_provider::prelude::*;
use sandyard_provider::{InstanceSpec, Verb};
use sandyard_provider_fake::{FakeProvider, TEMPLATE};
use sandyard_service::{CreateRequest, ForkRequest, Sandbox, ServiceSettings};

use crate::harness::{admin, alice, user};
use crate::multi_provider::{MultiProvider, fallback, from, with};

fn spec_of(fake: &FakeProvider, sandbox: &Sandbox) -> InstanceSpec {
    let id = sandbox.provider_id.as_deref().expect("an instance");
    fake.spec_of(id).expect("its spec")
}

fn of_project() -> CreateRequest {
    CreateRequest {
        project: Some("payroll".to_owned()),
        ..CreateRequest::default()
    }
}

#[tokio::test]
async fn only_an_admin_gets_at_the_folder_of_a_project() {
    let env = MultiProvider::new(ServiceSettings::default()).await;
    for (caller, project) in [
        (alice(), None),
        (admin(), Some("payroll")),
        (Caller::local(), Some("payroll")),
    ] {
        let made = env.service.create(&caller, of_project()).await;
        let made = made.expect("made");
        assert_eq!(made.project.as_deref(), Some("payroll"), "it is remembered");
        let spec = spec_of(&env.embedded, &made);
        assert_eq!(spec.project.as_deref(), project, "{}", caller.name);
        let name = made.id.as_str();
        let forked = env.service.fork(&caller, name, ForkRequest::default());
        let forked = forked.await.expect("forked");
        assert_eq!(spec_of(&env.embedded, &forked).project, None);
    }
}

#[tokio::test]
async fn users_start_from_what_the_installation_keeps_and_from_what_they_are_let() {
    let settings = ServiceSettings {
        user_templates: vec![format!("{}*", &TEMPLATE[..2])],
        ..ServiceSettings::default()
    };
    let strict = MultiProvider::new(ServiceSettings::default()).await;
    let open = MultiProvider::new(settings).await;
    for (env, caller, is_restricted) in [
        (&strict, alice(), true),
        (&strict, admin(), false),
        (&open, alice(), false),
    ] {
        let made = env.service.create(&caller, CreateRequest::default()).await;
        let made = made.expect("made");
        assert_eq!(spec_of(&env.embedded, &made).is_restricted, is_restricted);
        let name = made.id.as_str();
        let forked = env.service.fork(&caller, name, ForkRequest::default());
        let forked = forked.await.expect("forked");
        assert_eq!(spec_of(&env.embedded, &forked).is_restricted, is_restricted);
    }
}

#[tokio::test]
async fn the_operators_default_template_is_for_all_users() {
    let settings = ServiceSettings {
        default_template: Some("tools".to_owned()),
        ..ServiceSettings::default()
    };
    let env = MultiProvider::new(settings).await;
    for provider in ["embedded", "docker"] {
        let archive = Box::pin(std::io::Cursor::new(b"tar".to_vec()));
        env.service
            .import_template(&Caller::local(), Some(provider), "tools", archive)
            .await
            .expect("imported");
    }
    let made = env.create(CreateRequest::default()).await.expect("made");
    assert_eq!(made.template, "tools");
    assert!(!spec_of(&env.embedded, &made).is_restricted);
    // With another provider it is any name.
    let made = env.create(from("docker/tools")).await.expect("made");
    assert!(spec_of(&env.docker, &made).is_restricted);
}

#[tokio::test]
async fn no_snapshot_may_have_the_name_of_a_providers_default() {
    let env = MultiProvider::new(ServiceSettings::default()).await;
    let docker = env.docker.clone();
    let docker = docker.with_info(|info| info.default_template = "registry:5000/debian:12".into());
    let fakes = [env.embedded.clone(), docker, env.e2b.clone()];
    let env = MultiProvider::over(
        env.store.clone(),
        env.clock.clone(),
        fakes,
        ServiceSettings::default(),
    )
    .await;
    let made = env.create(with("e2b")).await.expect("made");
    let name = made.id.as_str();
    for template in [
        TEMPLATE,
        &format!("{TEMPLATE}:latest"),
        "registry:5000/debian:12",
        "registry:5000/debian",
        "docker/registry:5000/debian",
    ] {
        let taken = env.service.snapshot(&alice(), name, template).await;
        let error = taken.expect_err("it is everybody's");
        assert_eq!(error.kind, ErrorKind::Conflict, "{template}");
    }
    env.service
        .snapshot(&alice(), name, "mine")
        .await
        .expect("made");
    assert_eq!(env.e2b.count(Verb::Snapshot), 1);
}

#[tokio::test]
async fn an_admin_frees_the_name_of_a_template_for_all_users() {
    let env = MultiProvider::new(ServiceSettings::default()).await;
    let location = &env.e2b.info().location;
    let taken = sandyard_service::Snapshot {
        name: TEMPLATE.to_owned(),
        owner: alice().name,
        alias: None,
        sandbox_id: None,
        created_ms: 1,
        is_public: false,
    };
    let inserted = env.store.insert_snapshot(location, &taken).await;
    assert!(inserted.expect("the test environment works"));
    let bob = user("bob");
    env.service
        .create(&bob, with("e2b"))
        .await
        .expect_err("it is another's");
    let removed = env
        .service
        .remove_template(&bob, Some("e2b"), TEMPLATE)
        .await;
    removed.expect_err("it is another's");
    let removed = env
        .service
        .remove_template(&admin(), Some("e2b"), TEMPLATE)
        .await;
    removed.expect("freed");
    env.service
        .create(&bob, with("e2b"))
        .await
        .expect("it is everybody's again");
}

#[tokio::test]
async fn the_default_provider_is_not_for_users_either_when_it_is_not_listed() {
    let settings = ServiceSettings {
        user_providers: Some(vec!["docker".to_owned(), "e2b".to_owned()]),
        template_providers: [("special".to_owned(), "embedded".to_owned())].into(),
        ..ServiceSettings::default()
    };
    let env = MultiProvider::new(settings).await;
    let made = env.create(CreateRequest::default()).await.expect("made");
    assert_eq!(made.provider, "docker", "the first that is theirs");
    let error = env.create(from("special")).await.expect_err("may not");
    assert_eq!(error.kind, ErrorKind::Forbidden);
    let made = env.service.create(&admin(), CreateRequest::default()).await;
    assert_eq!(made.expect("made").provider, "embedded");
}

#[tokio::test]
async fn users_choose_among_the_providers_that_are_for_them() {
    let settings = ServiceSettings {
        user_providers: Some(vec!["embedded".to_owned(), "e2b".to_owned()]),
        ..fallback(["docker", "e2b"])
    };
    let env = MultiProvider::new(settings).await;
    env.create(with("e2b")).await.expect("may");
    for request in [with("docker"), from(&format!("docker/{TEMPLATE}"))] {
        let error = env.create(request).await.expect_err("may not");
        assert_eq!(
            (error.kind, error.field),
            (ErrorKind::Invalid, Some("provider"))
        );
    }
    env.service
        .create(&admin(), with("docker"))
        .await
        .expect("may");
    env.embedded.set_reachable(false);
    env.notice().await;
    let made = env.create(CreateRequest::default()).await.expect("made");
    assert_eq!(made.provider, "e2b", "`docker` is passed over");
    let made = env.service.create(&admin(), CreateRequest::default()).await;
    assert_eq!(made.expect("made").provider, "docker");
}

#[tokio::test]
async fn a_sandbox_with_a_provider_that_is_for_admins_is_not_forked_by_its_owner() {
    let settings = ServiceSettings {
        user_providers: Some(vec!["embedded".to_owned()]),
        ..ServiceSettings::default()
    };
    let env = MultiProvider::new(settings).await;
    let given = CreateRequest {
        owner: Some("alice".to_owned()),
        ..with("docker")
    };
    let given = env.service.create(&admin(), given).await.expect("given");
    for count in [1, 2] {
        let request = ForkRequest::default();
        let forks = env
            .service
            .fork_many(&alice(), given.id.as_str(), request, count)
            .await;
        // A single fork is created, or refused, alone.
        let refused = forks.and_then(|mut forks| forks.remove(0));
        let error = refused.expect_err("may not");
        assert_eq!(error.kind, ErrorKind::Forbidden);
    }
    assert_eq!(env.docker.count(Verb::Snapshot), 0);
    env.service
        .fork(&admin(), given.id.as_str(), ForkRequest::default())
        .await
        .expect("may");
}
