//! Secrets that sandboxes use without seeing them.

use std::collections::BTreeMap;

use sandyard_core::ErrorKind;
use sandyard_core::network::{BoundHost, SecretText};
use sandyard_provider::Verb;
use sandyard_service::{CreateRequest, ForkRequest, Sandbox, SecretRequest};

use crate::harness::{TestEnv, admin, alice, key_settings, until, user};

pub(crate) fn secret(name: &str, value: &str) -> SecretRequest {
    SecretRequest {
        name: name.to_owned(),
        value: SecretText::new(value),
        hosts: hosts(&["api.example.com"]),
        placeholder: None,
        is_shared: false,
    }
}

fn hosts(texts: &[&str]) -> Vec<BoundHost> {
    texts
        .iter()
        .map(|text| text.parse().expect("a host"))
        .collect()
}

/// A sandbox with these secrets, by variable.
pub(crate) fn using(secrets: &[(&str, &str)]) -> CreateRequest {
    CreateRequest {
        secrets: owned_map(secrets),
        ..CreateRequest::default()
    }
}

fn owned_map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// What a sandbox may use: name, placeholder, value.
async fn used(env: &TestEnv, sandbox: &Sandbox) -> Vec<(String, String, String)> {
    let grant = env.grant(sandbox).await;
    let secrets = grant.secrets.into_iter();
    secrets
        .map(|one| (one.name, one.placeholder, one.value.expose().to_owned()))
        .collect()
}

fn triple(name: &str, placeholder: &str, value: &str) -> (String, String, String) {
    (name.to_owned(), placeholder.to_owned(), value.to_owned())
}

#[tokio::test]
async fn a_sandbox_has_the_placeholder_and_the_gateway_the_value() {
    let env = TestEnv::with_key().await;
    let stored = env
        .service
        .put_secret(&alice(), secret("token", "s3cret"))
        .await;
    let stored = stored.unwrap();
    assert_eq!(stored.placeholder, "sandyard-secret-token");
    assert_eq!((stored.owner.as_str(), stored.is_shared), ("alice", false));
    let sandbox = env
        .make(CreateRequest {
            env: owned_map(&[("PLAIN", "1")]),
            ..using(&[("TOKEN", "token"), ("SAME", "token")])
        })
        .await;
    let instance = sandbox.provider_id.as_deref().unwrap();
    let variables = env.provider.spec_of(instance).unwrap().env;
    let expected = owned_map(&[
        ("PLAIN", "1"),
        ("SAME", "sandyard-secret-token"),
        ("TOKEN", "sandyard-secret-token"),
    ]);
    assert_eq!(variables, expected);
    assert_eq!(
        used(&env, &sandbox).await,
        [triple("token", "sandyard-secret-token", "s3cret")]
    );
    let grant = env.grant(&sandbox).await;
    assert_eq!(grant.secrets[0].hosts, hosts(&["api.example.com"]));
    assert!(!format!("{grant:?} {sandbox:?}").contains("s3cret"));
}

#[tokio::test]
async fn changing_and_deleting_take_effect_at_once() {
    let env = TestEnv::with_key().await;
    let service = &env.service;
    service
        .put_secret(&alice(), secret("token", "old"))
        .await
        .unwrap();
    service
        .put_secret(&alice(), secret("other", "x"))
        .await
        .unwrap();
    let sandbox = env.make(using(&[("TOKEN", "token")])).await;
    let unconcerned = env.make(using(&[("OTHER", "other")])).await;
    env.grant(&sandbox).await;
    env.grant(&unconcerned).await;
    let before = env.provider.count(Verb::SetNetwork);
    let changed = SecretRequest {
        placeholder: Some("another-placeholder".to_owned()),
        hosts: hosts(&["api.example.net"]),
        ..secret("token", "new")
    };
    let stored = service.put_secret(&alice(), changed).await.unwrap();
    assert_eq!(stored.placeholder, "another-placeholder");
    assert!(
        stored.updated_ms > stored.created_ms,
        "though no time passed"
    );
    // It keeps the placeholder it was made with.
    assert_eq!(
        used(&env, &sandbox).await,
        [triple("token", "sandyard-secret-token", "new")]
    );
    let grant = env.grant(&sandbox).await;
    assert_eq!(grant.secrets[0].hosts, hosts(&["api.example.net"]));
    service.delete_secret(&alice(), "token").await.unwrap();
    assert_eq!(used(&env, &sandbox).await, []);
    assert_eq!(env.provider.count(Verb::SetNetwork), before + 2);
    let repeated = service.delete_secret(&alice(), "token").await.unwrap_err();
    assert_eq!(repeated.kind, ErrorKind::NotFound);
}

#[tokio::test]
async fn a_change_that_did_not_arrive_comes_with_the_reconciler() {
    let env = TestEnv::with_key().await;
    env.service
        .put_secret(&alice(), secret("token", "old"))
        .await
        .unwrap();
    let sandbox = env.make(using(&[("TOKEN", "token")])).await;
    env.grant(&sandbox).await;
    let other = env.second_server_with(key_settings()).await;
    other.sweep().await.unwrap();
    env.provider.set_reachable(false);
    env.service
        .put_secret(&alice(), secret("token", "new"))
        .await
        .unwrap();
    env.provider.set_reachable(true);
    // Also by the one that knew nothing of it.
    other.sweep().await.unwrap();
    assert_eq!(used(&env, &sandbox).await[0].2, "new");
}

#[tokio::test]
async fn other_peoples_secrets_are_neither_seen_nor_used() {
    let env = TestEnv::with_key().await;
    let (service, bob) = (&env.service, user("bob"));
    service
        .put_secret(&bob, secret("token", "of bob"))
        .await
        .unwrap();
    assert_eq!(service.secrets(&alice()).await.unwrap(), []);
    let made = service.create(&alice(), using(&[("TOKEN", "token")])).await;
    let error = made.unwrap_err();
    assert_eq!(
        (error.kind, error.field),
        (ErrorKind::Invalid, Some("secrets"))
    );
    assert!(error.message.contains("`token`"));
    let deleted = service.delete_secret(&alice(), "token").await.unwrap_err();
    assert_eq!(deleted.kind, ErrorKind::NotFound);
    // One of the same name is another one.
    service
        .put_secret(&alice(), secret("token", "of alice"))
        .await
        .unwrap();
    let sandbox = env.make(using(&[("TOKEN", "token")])).await;
    assert_eq!(used(&env, &sandbox).await[0].2, "of alice");
    service.delete_secret(&bob, "token").await.unwrap();
    assert_eq!(used(&env, &sandbox).await[0].2, "of alice");
    // What an admin makes for a user uses that user's, not the admin's.
    let made = service
        .create(
            &admin(),
            CreateRequest {
                owner: Some("alice".to_owned()),
                ..using(&[("TOKEN", "token")])
            },
        )
        .await
        .unwrap();
    assert_eq!(used(&env, &made).await[0].2, "of alice");
}

#[tokio::test]
async fn shared_secrets_are_an_admins_to_share_and_everybodys_to_use() {
    let env = TestEnv::with_key().await;
    let service = &env.service;
    let shared = |value: &str| SecretRequest {
        is_shared: true,
        ..secret("mirror", value)
    };
    let refused = service.put_secret(&alice(), shared("x")).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::Forbidden);
    service
        .put_secret(&admin(), shared("of all"))
        .await
        .unwrap();
    let seen = service.secrets(&alice()).await.unwrap();
    assert_eq!((seen.len(), seen[0].owner.as_str()), (1, "root"));
    let sandbox = env.make(using(&[("MIRROR", "mirror")])).await;
    assert_eq!(used(&env, &sandbox).await[0].2, "of all");
    let deleted = service.delete_secret(&alice(), "mirror").await;
    assert_eq!(deleted.unwrap_err().kind, ErrorKind::NotFound);
    service
        .put_secret(&admin(), shared("changed"))
        .await
        .unwrap();
    assert_eq!(used(&env, &sandbox).await[0].2, "changed");
    let second = sandyard_core::Caller {
        name: "root2".to_owned(),
        ..admin()
    };
    let taken = service.put_secret(&second, shared("y")).await;
    assert_eq!(taken.unwrap_err().kind, ErrorKind::Conflict);
    // No longer shared, it is no longer theirs to use.
    service
        .put_secret(&admin(), secret("mirror", "own"))
        .await
        .unwrap();
    assert_eq!(used(&env, &sandbox).await, []);
    service.put_secret(&admin(), shared("again")).await.unwrap();
    service.delete_secret(&second, "mirror").await.unwrap();
    assert_eq!(used(&env, &sandbox).await, []);
}

#[tokio::test]
async fn what_cannot_be_a_secret_is_refused_without_showing_it() {
    let env = TestEnv::with_key().await;
    let fine = || secret("token", "s3cret");
    let long = "x".repeat(8193);
    let invalid = [
        (
            "name",
            SecretRequest {
                name: String::new(),
                ..fine()
            },
        ),
        (
            "name",
            SecretRequest {
                name: "a b".to_owned(),
                ..fine()
            },
        ),
        (
            "name",
            SecretRequest {
                name: "x".repeat(65),
                ..fine()
            },
        ),
        ("value", secret("token", "")),
        ("value", secret("token", "s3cret\n")),
        ("value", secret("token", &long)),
        (
            "hosts",
            SecretRequest {
                hosts: Vec::new(),
                ..fine()
            },
        ),
        (
            "placeholder",
            SecretRequest {
                placeholder: Some("short".to_owned()),
                ..fine()
            },
        ),
        (
            "placeholder",
            SecretRequest {
                placeholder: Some("with a space".to_owned()),
                ..fine()
            },
        ),
    ];
    for (field, request) in invalid {
        let error = env.service.put_secret(&alice(), request).await.unwrap_err();
        assert_eq!((error.kind, error.field), (ErrorKind::Invalid, Some(field)));
        assert!(!format!("{error:?}").contains("s3cret"));
    }
    assert!(!format!("{:?}", fine()).contains("s3cret"));
}

#[tokio::test]
async fn no_placeholder_contains_another() {
    let env = TestEnv::with_key().await;
    let service = &env.service;
    let git = service
        .put_secret(&alice(), secret("git", "1"))
        .await
        .unwrap();
    let github = service
        .put_secret(&alice(), secret("github", "2"))
        .await
        .unwrap();
    assert!(!github.placeholder.contains(&git.placeholder));
    assert!(!git.placeholder.contains(&github.placeholder));
    let inside = SecretRequest {
        placeholder: Some("secret-git".to_owned()),
        ..secret("third", "3")
    };
    let refused = service.put_secret(&alice(), inside).await.unwrap_err();
    assert_eq!(refused.field, Some("placeholder"));
    // Changed without a word on it, it stays.
    let changed = service
        .put_secret(&alice(), secret("github", "4"))
        .await
        .unwrap();
    assert_eq!(changed.placeholder, github.placeholder);
    // What an admin shares later may clash with what a user has; then both in one sandbox do.
    let clash = SecretRequest {
        placeholder: Some(format!("{}-2", git.placeholder)),
        is_shared: true,
        ..secret("shared", "5")
    };
    service.put_secret(&admin(), clash).await.unwrap();
    let both = using(&[("A", "git"), ("B", "shared")]);
    let made = service.create(&alice(), both).await.unwrap_err();
    assert!(made.message.contains("told apart"), "{made}");
    env.make(using(&[("B", "shared")])).await;
}

#[tokio::test]
async fn a_variable_is_a_secret_or_something_else() {
    let env = TestEnv::with_key().await;
    let service = &env.service;
    service
        .put_secret(&alice(), secret("token", "s3cret"))
        .await
        .unwrap();
    let both = CreateRequest {
        env: owned_map(&[("TOKEN", "mine")]),
        ..using(&[("TOKEN", "token")])
    };
    let refused = service.create(&alice(), both).await.unwrap_err();
    assert_eq!(refused.field, Some("secrets"));
    let refused = service.create(&alice(), using(&[("A=B", "token")])).await;
    assert_eq!(refused.unwrap_err().field, Some("secrets"));
    let original = env.make(using(&[("TOKEN", "token")])).await;
    let name = original.id.as_str();
    let fork = |env: &[(&str, &str)]| ForkRequest {
        env: Some(owned_map(env)),
        ..ForkRequest::default()
    };
    let refused = service.fork(&alice(), name, fork(&[("TOKEN", "x")])).await;
    assert_eq!(refused.unwrap_err().field, Some("secrets"));
    let copy = service.fork(&alice(), name, fork(&[("MORE", "1")])).await;
    let copy = copy.unwrap();
    let placeholder = "sandyard-secret-token";
    assert_eq!(
        copy.env,
        owned_map(&[("MORE", "1"), ("TOKEN", placeholder)])
    );
    assert_eq!(
        used(&env, &copy).await,
        [triple("token", placeholder, "s3cret")]
    );
}

#[tokio::test]
async fn secrets_belong_to_what_a_repeated_request_asks_for() {
    let env = TestEnv::with_key().await;
    for name in ["one", "two"] {
        env.service
            .put_secret(&alice(), secret(name, "x"))
            .await
            .unwrap();
    }
    let request = |name: &str| CreateRequest {
        idempotency_key: Some("once".to_owned()),
        ..using(&[("TOKEN", name)])
    };
    let first = env.make(request("one")).await;
    assert_eq!(env.make(request("one")).await.id, first.id);
    let other = env.service.create(&alice(), request("two")).await;
    assert_eq!(other.unwrap_err().kind, ErrorKind::Conflict);
}

#[tokio::test]
async fn without_a_key_or_with_another_one_it_is_said_what_to_do() {
    let keyless = TestEnv::new().await;
    let refused = keyless
        .service
        .put_secret(&alice(), secret("token", "x"))
        .await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Unsupported);
    assert!(refused.hint.unwrap().contains("`secrets.key`"));

    let env = TestEnv::with_key().await;
    env.service
        .put_secret(&alice(), secret("token", "x"))
        .await
        .unwrap();
    let sandbox = env.make(using(&[("TOKEN", "token")])).await;
    env.grant(&sandbox).await;
    let mut settings = key_settings();
    settings.sealing_key = Some([8; 32]);
    let wrong = env.second_server_with(settings).await;
    let error = wrong.refresh_network(&sandbox.id).await.unwrap_err();
    assert!(
        error.message.contains("`secrets.key` is not the key"),
        "{error}"
    );
    assert!(error.message.contains("`secrets.key`"), "{error}");
}

#[tokio::test]
async fn a_deleted_sandbox_keeps_nothing_of_them() {
    let env = TestEnv::with_key().await;
    env.service
        .put_secret(&alice(), secret("token", "x"))
        .await
        .unwrap();
    let sandbox = env.make(using(&[("TOKEN", "token")])).await;
    env.grant(&sandbox).await;
    let deleted = env.service.delete(&alice(), sandbox.id.as_str()).await;
    let deleted = deleted.unwrap();
    assert!(deleted.secrets.is_empty() && deleted.env.is_empty());
    let instance = sandbox.provider_id.unwrap();
    until(|| env.provider.grant(&instance).is_none()).await;
}
