//! Snapshots belong to the owner of the sandbox.

use sandyard_core::{Caller, ErrorKind};
use sandyard_provider::{ProviderErrorKind, Ready, Verb};
use sandyard_service::{CreateRequest, ForkRequest, ServiceSettings};

use crate::harness::{TestEnv, alice, until, user};

fn from(template: &str) -> CreateRequest {
    CreateRequest {
        template: Some(template.to_owned()),
        ..CreateRequest::default()
    }
}

#[tokio::test]
async fn a_snapshot_belongs_to_its_owner_alone() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let name = sandbox.id.as_str();
    env.service.snapshot(&alice(), name, "mine").await.unwrap();
    let names = async |caller: &Caller| -> Vec<String> {
        let templates = env.service.templates(caller).await.unwrap();
        let templates = templates.templates.into_iter();
        templates
            .map(|template| template.label.unwrap_or(template.info.name))
            .collect()
    };
    assert!(names(&alice()).await.contains(&"mine".to_owned()));
    assert!(names(&Caller::local()).await.contains(&"mine".to_owned()));
    assert!(!names(&user("bob")).await.contains(&"mine".to_owned()));
    let bob = user("bob");
    let error = env.service.create(&bob, from("mine")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    let error = env
        .service
        .remove_template(&bob, None, "mine")
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    env.service.create(&alice(), from("mine")).await.unwrap();
    env.service
        .remove_template(&alice(), None, "mine")
        .await
        .unwrap();
    assert!(!names(&alice()).await.contains(&"mine".to_owned()));
}

#[tokio::test]
async fn a_snapshot_in_doubt_keeps_its_name_and_can_be_tried_again() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let name = sandbox.id.as_str();
    env.provider
        .fail_next(Verb::Snapshot, ProviderErrorKind::Unavailable);
    assert!(env.service.snapshot(&alice(), name, "mine").await.is_err());
    env.service.snapshot(&alice(), name, "mine").await.unwrap();
    env.service.create(&alice(), from("mine")).await.unwrap();
    let second_attempt = env.service.snapshot(&alice(), name, "mine").await;
    assert_eq!(second_attempt.unwrap_err().kind, ErrorKind::Conflict);
}

/// The names that a user sees, labels and provider's names alike.
async fn visible(env: &TestEnv, caller: &Caller) -> Vec<String> {
    let list = env.service.templates(caller).await.expect("templates");
    let names = list.templates.into_iter();
    names
        .flat_map(|template| [Some(template.info.name), template.label])
        .flatten()
        .collect()
}

#[tokio::test]
async fn a_snapshot_whose_answer_was_lost_stays_private() {
    let lost = [
        ProviderErrorKind::Unavailable,
        ProviderErrorKind::TimedOut,
        ProviderErrorKind::Failed,
    ];
    // The first attempt makes the template and loses the answer, or makes nothing and the second one loses it.
    for (kind, attempt) in lost.into_iter().flat_map(|kind| [(kind, 1), (kind, 2)]) {
        let env = TestEnv::new().await;
        let sandbox = env.create().await;
        let (bob, name) = (user("bob"), sandbox.id.as_str());
        let before = visible(&env, &bob).await;
        if attempt == 2 {
            env.provider
                .fail_next(Verb::Snapshot, ProviderErrorKind::Unavailable);
            env.service
                .snapshot(&alice(), name, "mine")
                .await
                .unwrap_err();
        }
        env.provider.lose_next_answer(Verb::Snapshot, kind);
        env.service
            .snapshot(&alice(), name, "mine")
            .await
            .unwrap_err();
        assert_eq!(visible(&env, &bob).await, before, "{kind:?} {attempt}");
        assert!(visible(&env, &alice()).await.contains(&"mine".to_owned()));
        // Trying again changes nothing: the template is there.
        let second_attempt = env.service.snapshot(&alice(), name, "mine").await;
        assert_eq!(second_attempt.unwrap_err().kind, ErrorKind::Conflict);
        assert_eq!(visible(&env, &bob).await, before, "{kind:?} {attempt}");
        let error = env.service.create(&bob, from("mine")).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound);
        env.service.create(&alice(), from("mine")).await.unwrap();
    }
}

#[tokio::test]
async fn a_name_is_free_again_after_a_failed_snapshot_and_taken_after_a_good_one() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let name = sandbox.id.as_str();
    env.provider
        .fail_next(Verb::Snapshot, ProviderErrorKind::Failed);
    assert!(env.service.snapshot(&alice(), name, "mine").await.is_err());
    env.service.snapshot(&alice(), name, "mine").await.unwrap();
    let second_attempt = env
        .service
        .snapshot(&alice(), name, "mine")
        .await
        .unwrap_err();
    assert_eq!(second_attempt.kind, ErrorKind::Conflict);
}

#[tokio::test]
async fn a_snapshots_name_moves_on_to_the_newest() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let name = sandbox.id.as_str();
    let service = &env.service;
    let first = service
        .snapshot_as(&alice(), name, Some("state"))
        .await
        .unwrap();
    env.clock.advance_ms(1);
    let second = service
        .snapshot_as(&alice(), name, Some("state"))
        .await
        .unwrap();
    env.clock.advance_ms(1);
    let third = service.snapshot_as(&alice(), name, None).await.unwrap();
    let listed = service.snapshots(&alice(), Some(name)).await.unwrap();
    let names: Vec<_> = listed
        .iter()
        .map(|one| (one.name.as_str(), one.alias.as_deref()))
        .collect();
    assert_eq!(
        names,
        [
            (third.name.as_str(), None),
            (second.name.as_str(), Some("state")),
            (first.name.as_str(), None),
        ]
    );
    assert!(
        service
            .snapshots(&alice(), Some("another"))
            .await
            .unwrap()
            .is_empty()
    );
    assert!(
        service
            .snapshots(&user("bob"), None)
            .await
            .unwrap()
            .is_empty()
    );

    let made = service.create(&alice(), from("state")).await.unwrap();
    assert_eq!(made.template, second.name);
    let error = service
        .create(&user("bob"), from("state"))
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    service
        .remove_template(&alice(), None, "state")
        .await
        .unwrap();
    let remaining = service.snapshots(&alice(), None).await.unwrap();
    assert!(remaining.iter().all(|one| one.name != second.name));
}

#[tokio::test]
async fn a_snapshots_name_is_a_word() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    for alias in ["", "two words", "line\nbreak", &"x".repeat(200)] {
        let error = env
            .service
            .snapshot_as(&alice(), sandbox.id.as_str(), Some(alias))
            .await
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid, "{alias:?}");
    }
}

#[tokio::test]
async fn names_of_templates_for_all_users_are_reserved() {
    let ready = |template: Option<&str>, count| Ready {
        template: template.map(str::to_owned),
        count,
    };
    let env = TestEnv::with(ServiceSettings {
        ready: vec![ready(None, 2), ready(Some("warm"), 3)],
        ..ServiceSettings::default()
    })
    .await;
    let sandbox = env.create().await;
    let name = sandbox.id.as_str();
    for taken in ["base", "host", "code-interpreter-v1", "mcp-gateway", "warm"] {
        let error = env
            .service
            .snapshot(&alice(), name, taken)
            .await
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Conflict, "{taken}");
    }
    // An admin may, on a user's behalf; but what that starts is not started by the server itself.
    let admin = Caller::local();
    env.service.snapshot(&admin, name, "warm").await.unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let service = env.service.clone();
    let running = tokio::spawn(async move {
        service
            .run(async {
                let _ = stopped.await;
            })
            .await;
    });
    until(|| env.provider.ready() > 0).await;
    assert_eq!(env.provider.ready(), 2);
    drop(stop);
    running.await.unwrap();
}

#[tokio::test]
async fn many_forks_are_one_copy_and_leave_no_snapshot() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let name = sandbox.id.as_str();
    env.provider
        .fail_next(Verb::Create, ProviderErrorKind::Failed);
    let forks = env
        .service
        .fork_many(&alice(), name, ForkRequest::default(), 4)
        .await
        .unwrap();
    assert_eq!(forks.len(), 4);
    assert_eq!(forks.iter().filter(|fork| fork.is_ok()).count(), 3);
    for fork in forks.iter().flatten() {
        assert_ne!(fork.id, sandbox.id);
        assert_eq!(fork.template, sandbox.template);
    }
    assert_eq!(env.provider.count(Verb::Snapshot), 1);
    assert!(
        env.service
            .snapshots(&alice(), None)
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn a_snapshot_that_is_known_here_alone_can_be_removed() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    env.provider
        .fail_next(Verb::Snapshot, ProviderErrorKind::Unavailable);
    let made = env
        .service
        .snapshot(&alice(), sandbox.id.as_str(), "cut-short")
        .await;
    assert!(made.is_err());
    let listed = env.service.snapshots(&alice(), None).await.unwrap();
    assert_eq!(listed.len(), 1);
    env.service
        .remove_template(&alice(), None, "cut-short")
        .await
        .unwrap();
    assert!(
        env.service
            .snapshots(&alice(), None)
            .await
            .unwrap()
            .is_empty()
    );
}

/// The provider's names of the templates that a caller sees under a label, with their owners.
async fn labelled(env: &TestEnv, caller: &Caller, label: &str) -> Vec<(String, String)> {
    let list = env
        .service
        .templates(caller)
        .await
        .expect("templates are listed");
    let of_label = |template: &sandyard_service::Template| template.label.as_deref() == Some(label);
    let mut names: Vec<_> = list
        .templates
        .into_iter()
        .filter(of_label)
        .map(|template| (template.owner.unwrap_or_default(), template.info.name))
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn every_owner_has_names_of_its_own() {
    let env = TestEnv::new().await;
    let (service, bob) = (&env.service, user("bob"));
    let hers = env.create().await;
    let his = service
        .create(&bob, CreateRequest::default())
        .await
        .unwrap();
    service
        .snapshot(&alice(), hers.id.as_str(), "snapa")
        .await
        .unwrap();
    // Neither refused nor told that somebody else has it.
    service
        .snapshot(&bob, his.id.as_str(), "snapa")
        .await
        .unwrap();

    let (of_alice, of_bob) = (
        labelled(&env, &alice(), "snapa").await,
        labelled(&env, &bob, "snapa").await,
    );
    assert_eq!((of_alice.len(), of_bob.len()), (1, 1));
    assert_ne!(of_alice[0].1, of_bob[0].1);
    for (caller, own) in [(alice(), &of_alice), (user("bob"), &of_bob)] {
        let made = service.create(&caller, from("snapa")).await.unwrap();
        assert_eq!(made.template, own[0].1);
        let labelled_sandbox = service.with_template_label(&caller, made).await.unwrap();
        assert_eq!(labelled_sandbox.template, "snapa");
    }
    // Another user's is not reached by the provider's name either.
    let error = service.create(&bob, from(&of_alice[0].1)).await;
    assert_eq!(error.unwrap_err().kind, ErrorKind::NotFound);

    let admin = Caller::local();
    let all = labelled(&env, &admin, "snapa").await;
    assert_eq!(
        all.iter().map(|(owner, _)| &**owner).collect::<Vec<_>>(),
        ["alice", "bob"]
    );
    let error = service.remove_template(&admin, None, "snapa").await;
    assert_eq!(error.unwrap_err().kind, ErrorKind::Conflict);

    service.remove_template(&bob, None, "snapa").await.unwrap();
    assert!(labelled(&env, &bob, "snapa").await.is_empty());
    assert_eq!(labelled(&env, &alice(), "snapa").await, of_alice);
    // Now the name is unambiguous for an admin as well.
    service
        .remove_template(&admin, None, "snapa")
        .await
        .unwrap();
    assert!(labelled(&env, &admin, "snapa").await.is_empty());
}

#[tokio::test]
async fn snapshots_of_earlier_versions_keep_their_names() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let name = sandbox.id.as_str();
    // Until now the provider's name was the one that the owner gave; an admin's still is.
    env.service
        .snapshot(&Caller::local(), name, "old")
        .await
        .unwrap();
    let made = env.service.create(&alice(), from("old")).await.unwrap();
    assert_eq!(made.template, "old");
    let second_attempt = env.service.snapshot(&alice(), name, "old").await;
    assert_eq!(second_attempt.unwrap_err().kind, ErrorKind::Conflict);
    let bob = user("bob");
    let his = env.service.create(&bob, CreateRequest::default()).await;
    let his = his.unwrap();
    env.service
        .snapshot(&bob, his.id.as_str(), "old")
        .await
        .unwrap();
    env.service
        .remove_template(&alice(), None, "old")
        .await
        .unwrap();
    assert_eq!(labelled(&env, &bob, "old").await.len(), 1);
}

#[tokio::test]
async fn no_label_hides_a_template_of_the_operator() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let name = sandbox.id.as_str();
    let list = env.service.templates(&alice()).await.unwrap();
    let shared = list.templates[0].info.name.clone();
    let error = env.service.snapshot(&alice(), name, &shared).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(error.message.contains("for everybody"), "{}", error.message);
}
