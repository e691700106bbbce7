//! What sandboxes may reach: stored, shown, changed, and passed to the provider that enforces it.

use std::sync::Arc;

use sandyard_core::network::{NetworkPolicy, Target};
use sandyard_core::{ErrorKind, SandboxState};
use sandyard_provider::prelude::*;
use sandyard_provider::{ProviderErrorKind, Verb};
use sandyard_provider_fake::FakeProvider;
use sandyard_service::{
    CreateRequest, ForkRequest, NodeConnector, NodeSetup, Sandbox, Service, ServiceSettings,
};
use sandyard_store::Timers;
use serde_json::json;

use crate::harness::{TestEnv, alice, key_settings, policy, until, user};

fn targets(texts: &[&str]) -> Vec<Target> {
    texts
        .iter()
        .map(|text| text.parse().expect("a target"))
        .collect()
}

fn closed() -> NetworkPolicy {
    policy(json!({"allow_internet_access": false, "allow_out": ["pypi.org"]}))
}

/// A policy that sets a header whose value is a secret.
fn with_header(value: &str) -> NetworkPolicy {
    policy(json!({
        "allow_out": ["api.example.com"],
        "rules": {"api.example.com": [{"transform": {"headers": {"Authorization": value}}}]},
    }))
}

fn asking_for(policy: NetworkPolicy) -> CreateRequest {
    CreateRequest {
        network: Some(policy),
        ..CreateRequest::default()
    }
}

fn header_of(policy: &NetworkPolicy) -> String {
    let rules = policy.rules.values().next().expect("a rule");
    rules[0].transform.headers["Authorization"].clone()
}

#[tokio::test]
async fn a_sandbox_gets_the_policy_it_was_made_with_or_the_default() {
    let env = TestEnv::with(ServiceSettings {
        default_network: closed(),
        ..ServiceSettings::default()
    })
    .await;
    let plain = env.create().await;
    let grant = env.grant(&plain).await;
    assert_eq!((&grant.policy, grant.is_leading), (&closed(), true));
    assert_eq!((grant.sandbox_id, grant.owner), (plain.id, "alice".into()));
    let open = policy(json!({"deny_out": ["example.org"]}));
    let restricted = env.make(asking_for(open.clone())).await;
    assert_eq!(env.grant(&restricted).await.policy, open);
    let reported = env.service.network(&alice(), restricted.id.as_str()).await;
    assert_eq!(reported.unwrap(), open);
}

#[tokio::test]
async fn a_create_does_not_wait_for_egress() {
    let env = TestEnv::new().await;
    let gate = env.provider.hold(Verb::SetNetwork);
    let sandbox = env.create().await;
    gate.reached_by(1).await;
    gate.release();
    env.grant(&sandbox).await;
}

#[tokio::test]
async fn a_change_is_in_force_when_it_is_answered_and_becomes_an_event() {
    let env = TestEnv::with_key().await;
    let sandbox = env.make(asking_for(closed())).await;
    let name = sandbox.id.as_str();
    let service = &env.service;
    let more = targets(&["crates.io:443", "pypi.org"]);
    service.allow_network(&alice(), name, more).await.unwrap();
    let granted = env.grant(&sandbox).await;
    assert_eq!(
        granted.policy.allow_out,
        targets(&["pypi.org", "crates.io:443"])
    );
    assert!(granted.is_leading);
    let less = targets(&["pypi.org"]);
    service.deny_network(&alice(), name, less).await.unwrap();
    let granted = env.grant(&sandbox).await.policy;
    assert_eq!(granted.allow_out, targets(&["crates.io:443"]));
    assert_eq!(granted.deny_out, targets(&["pypi.org"]));
    let secret = with_header("Bearer s3cret");
    service
        .set_network(&alice(), name, secret.clone())
        .await
        .unwrap();
    assert_eq!(env.grant(&sandbox).await.policy, secret);
    let events = env.events(&sandbox.id).await;
    let changes: Vec<_> = events
        .iter()
        .filter(|event| event.kind == "network_changed")
        .collect();
    assert_eq!(changes.len(), 3);
    assert_eq!(
        changes[0].data["allow_out"],
        json!(["pypi.org", "crates.io:443"])
    );
    assert_eq!(changes[2].data["rules_for"], json!(["api.example.com"]));
    assert!(!format!("{events:?}").contains("s3cret"));
}

#[tokio::test]
async fn what_is_denied_must_not_stay_open_by_another_entry() {
    let env = TestEnv::new().await;
    let open = policy(json!({"allow_out": ["*.example.com", "10.0.0.0/8", "b.org:443"]}));
    let sandbox = env.make(asking_for(open)).await;
    let name = sandbox.id.as_str();
    for covered in [
        "evil.example.com",
        "*.deep.example.com",
        "10.1.0.0/16",
        "b.org",
        "b.org:443",
    ] {
        let denied = env
            .service
            .deny_network(&alice(), name, targets(&[covered]))
            .await;
        // The very same entry moves; a wider one stays and would win.
        match covered {
            "b.org:443" => assert!(denied.is_ok()),
            _ => assert_eq!(denied.unwrap_err().kind, ErrorKind::Invalid, "{covered}"),
        }
    }
    for fine in ["example.org", "0.0.0.0/0", "example.com"] {
        let denied = env
            .service
            .deny_network(&alice(), name, targets(&[fine]))
            .await;
        denied.unwrap();
    }
}

#[tokio::test]
async fn values_of_headers_are_hidden_and_stay_when_sent_back_so() {
    let env = TestEnv::with_key().await;
    let sandbox = env.make(asking_for(with_header("Bearer s3cret"))).await;
    let name = sandbox.id.as_str();
    assert_eq!(
        header_of(&env.grant(&sandbox).await.policy),
        "Bearer s3cret"
    );
    let mut redacted = env.service.network(&alice(), name).await.unwrap();
    assert_eq!(header_of(&redacted), "***");
    redacted.allow(targets(&["example.org"]));
    env.service
        .set_network(&alice(), name, redacted)
        .await
        .unwrap();
    let granted = env.grant(&sandbox).await.policy;
    assert_eq!(header_of(&granted), "Bearer s3cret");
    assert!(granted.allow_out.contains(&"example.org".parse().unwrap()));
    // Nobody sends a hidden value elsewhere, or without TLS, by writing its host anew.
    for host in [
        "http://api.example.com",
        "api.example.com:8443",
        "*.example.com",
    ] {
        let moved = policy(
            json!({"rules": {host: [{"transform": {"headers": {"Authorization": "***"}}}]}}),
        );
        let set = env.service.set_network(&alice(), name, moved).await;
        assert_eq!(set.unwrap_err().kind, ErrorKind::Invalid, "{host}");
    }
    assert_eq!(env.grant(&sandbox).await.policy, granted);
    // Where there is none, it stands for nothing.
    let made = env
        .service
        .create(&alice(), asking_for(with_header("***")))
        .await;
    assert_eq!(made.unwrap_err().kind, ErrorKind::Invalid);
}

#[tokio::test]
async fn a_rule_keeps_its_port_and_whether_it_takes_tls() {
    let env = TestEnv::with_key().await;
    let with = |value: &str| json!([{"transform": {"headers": {"Authorization": value}}}]);
    let requested = policy(json!({"rules": {
        "api.example.com": with("1"), "api.example.com:8443": with("2"), "http://registry.internal": with("3"),
    }}));
    let sandbox = env.make(asking_for(requested.clone())).await;
    assert_eq!(env.grant(&sandbox).await.policy, requested);
    let name = sandbox.id.as_str();
    let redacted = env.service.network(&alice(), name).await.unwrap();
    assert!(redacted.rules.keys().eq(requested.rules.keys()));
    let set = env.service.set_network(&alice(), name, redacted).await;
    set.unwrap();
    assert_eq!(env.grant(&sandbox).await.policy, requested);
}

#[tokio::test]
async fn the_longest_value_can_be_kept_and_the_policy_changed_afterwards() {
    let env = TestEnv::with_key().await;
    let long = "x".repeat(8 << 10);
    let sandbox = env.make(asking_for(with_header(&long))).await;
    let more = targets(&["example.org"]);
    env.service
        .allow_network(&alice(), sandbox.id.as_str(), more)
        .await
        .unwrap();
    assert_eq!(header_of(&env.grant(&sandbox).await.policy), long);
}

#[tokio::test]
async fn a_policy_that_makes_no_sense_is_refused() {
    let env = TestEnv::new().await;
    let mut invalid = with_header("fine");
    for rule in invalid.rules.values_mut().flatten() {
        let headers = &mut rule.transform.headers;
        headers.insert("Host".to_owned(), "x".to_owned());
    }
    let made = env
        .service
        .create(&alice(), asking_for(invalid.clone()))
        .await;
    assert_eq!(made.unwrap_err().field, Some("network"));
    let sandbox = env.create().await;
    let set = env
        .service
        .set_network(&alice(), sandbox.id.as_str(), invalid)
        .await;
    assert_eq!(set.unwrap_err().field, Some("network"));
    // Without a key no value can be kept.
    let made = env
        .service
        .create(&alice(), asking_for(with_header("Bearer s3cret")))
        .await;
    assert_eq!(made.unwrap_err().kind, ErrorKind::Unsupported);
}

#[tokio::test]
async fn other_peoples_sandboxes_are_not_found() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let (name, bob) = (sandbox.id.as_str(), user("bob"));
    let service = &env.service;
    let some = || targets(&["example.org"]);
    let errors = [
        service.network(&bob, name).await.unwrap_err(),
        service.set_network(&bob, name, closed()).await.unwrap_err(),
        service.allow_network(&bob, name, some()).await.unwrap_err(),
        service.deny_network(&bob, name, some()).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind, ErrorKind::SandboxNotFound);
    }
    assert_eq!(env.row(&sandbox.id).await.network, None);
}

#[tokio::test]
async fn a_restarted_sandbox_gets_its_egress_again_and_a_resumed_one_still_has_it() {
    let env = TestEnv::new().await;
    let sandbox = env.make(asking_for(closed())).await;
    let name = sandbox.id.as_str();
    env.grant(&sandbox).await;
    env.service.pause(&alice(), name, None).await.unwrap();
    env.service.resume(&alice(), name).await.unwrap();
    assert_eq!(env.provider.count(Verb::SetNetwork), 1);
    env.service.stop(&alice(), name).await.unwrap();
    env.service.resume(&alice(), name).await.unwrap();
    let grant = env.grant(&sandbox).await;
    assert_eq!((grant.policy, grant.is_leading), (closed(), true));
}

#[tokio::test]
async fn a_change_of_a_stopped_sandbox_holds_from_its_next_start() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let name = sandbox.id.as_str();
    env.grant(&sandbox).await;
    env.service.stop(&alice(), name).await.unwrap();
    let set = env.service.set_network(&alice(), name, closed()).await;
    set.unwrap();
    let instance = sandbox.provider_id.as_deref().unwrap();
    assert_eq!(env.provider.grant(instance), None);
    env.service.resume(&alice(), name).await.unwrap();
    assert_eq!(env.grant(&sandbox).await.policy, closed());
}

#[tokio::test]
async fn a_fork_has_the_network_of_its_original_under_a_seal_of_its_own() {
    let env = TestEnv::with_key().await;
    let original = env.make(asking_for(with_header("Bearer s3cret"))).await;
    let fork = env
        .service
        .fork(&alice(), original.id.as_str(), ForkRequest::default())
        .await
        .unwrap();
    assert_eq!(env.grant(&fork).await.policy, with_header("Bearer s3cret"));
    assert_ne!(env.row(&fork.id).await.network, original.network);
}

#[tokio::test]
async fn what_a_place_cannot_enforce_is_said_of_those_who_asked_for_it() {
    let env = TestEnv::new().await;
    env.provider
        .set_unenforced(vec!["look-ups are open".to_owned()]);
    let plain = env.create().await;
    env.grant(&plain).await;
    let restricted = env.make(asking_for(closed())).await;
    let limitations_of = async |sandbox: &Sandbox| env.row(&sandbox.id).await.limitations;
    let waiting = async {
        while limitations_of(&restricted).await.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(120), waiting)
        .await
        .unwrap();
    let set = env
        .service
        .set_network(&alice(), restricted.id.as_str(), NetworkPolicy::default())
        .await
        .unwrap();
    assert_eq!(set.limitations, ["look-ups are open"], "and said once");
    assert_eq!(limitations_of(&plain).await, [""; 0]);
}

#[tokio::test]
async fn the_reconciler_pushes_what_did_not_arrive_and_nothing_twice() {
    let env = TestEnv::new().await;
    env.provider
        .fail_next(Verb::SetNetwork, ProviderErrorKind::Unavailable);
    let sandbox = env.make(asking_for(closed())).await;
    until(|| env.provider.count(Verb::SetNetwork) == 1).await;
    let instance = sandbox.provider_id.as_deref().unwrap();
    assert_eq!(env.provider.grant(instance), None);
    env.pass(31_000).await;
    let grant = env.provider.grant(instance).unwrap();
    assert_eq!((grant.policy, grant.is_leading), (closed(), false));
    let pushed = env.provider.count(Verb::SetNetwork);
    env.pass(31_000).await;
    assert_eq!(env.provider.count(Verb::SetNetwork), pushed);
}

#[tokio::test]
async fn a_change_that_could_not_be_put_in_force_says_so_and_comes_later() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let open = env.grant(&sandbox).await.policy;
    env.provider
        .fail_next(Verb::SetNetwork, ProviderErrorKind::Failed);
    let set = env
        .service
        .set_network(&alice(), sandbox.id.as_str(), closed())
        .await;
    assert!(set.unwrap_err().message.contains("not in force yet"));
    assert_eq!(env.grant(&sandbox).await.policy, open);
    env.pass(31_000).await;
    assert_eq!(env.grant(&sandbox).await.policy, closed());
}

#[tokio::test]
async fn a_server_that_starts_opens_the_egress_of_all_live_sandboxes() {
    let env = TestEnv::new().await;
    let mut made = Vec::new();
    for _ in 0..40 {
        made.push(env.make(asking_for(closed())).await);
    }
    for sandbox in &made {
        env.grant(sandbox).await;
    }
    let (paused, stopped) = (&made[0], &made[1]);
    env.service
        .pause(&alice(), paused.id.as_str(), None)
        .await
        .unwrap();
    env.service
        .stop(&alice(), stopped.id.as_str())
        .await
        .unwrap();
    let before = env.provider.count(Verb::SetNetwork);
    let next = env.second_server().await;
    next.sweep().await.unwrap();
    assert_eq!(env.provider.count(Verb::SetNetwork), before + 39);
    assert_eq!(env.provider.instances()[0].state, SandboxState::Paused);
    assert!(!env.grant(paused).await.is_leading);
    assert_eq!(
        env.provider.grant(stopped.provider_id.as_deref().unwrap()),
        None
    );
}

#[tokio::test]
async fn a_change_through_one_server_reaches_the_other() {
    let env = TestEnv::new().await;
    let other = env.second_server().await;
    let sandbox = env.create().await;
    env.grant(&sandbox).await;
    other.sweep().await.unwrap();
    let pushed = env.provider.count(Verb::SetNetwork);
    env.service
        .set_network(&alice(), sandbox.id.as_str(), closed())
        .await
        .unwrap();
    other.sweep().await.unwrap();
    assert_eq!(env.provider.count(Verb::SetNetwork), pushed + 2);
    let grant = env.grant(&sandbox).await;
    assert_eq!((grant.policy, grant.is_leading), (closed(), false));
}

#[tokio::test]
async fn what_another_node_asks_for_is_pushed_here_from_the_row() {
    let env = TestEnv::with_key().await;
    let secret = with_header("Bearer s3cret");
    let sandbox = env.make(asking_for(secret.clone())).await;
    env.grant(&sandbox).await;
    let instance = sandbox.provider_id.as_deref().unwrap();
    env.provider.stop(instance).await.unwrap();
    env.provider.start(instance).await.unwrap();
    env.provider.set_unenforced(vec!["pings".to_owned()]);
    let answering = env.second_server_with(key_settings()).await;
    let limitations = answering.refresh_network(&sandbox.id).await.unwrap();
    assert_eq!(limitations, ["pings"]);
    assert_eq!(env.grant(&sandbox).await.policy, secret);
    let unknown = sandyard_core::SandboxId::from_random([3; 20]);
    let error = answering.refresh_network(&unknown).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::SandboxNotFound);
}

#[tokio::test]
async fn values_do_not_travel_to_other_nodes() {
    let env = TestEnv::with_key().await;
    let there = FakeProvider::new().with_info(|info| info.location = "fake:2".to_owned());
    let folder = tempfile::tempdir().unwrap();
    let open = async |node: NodeSetup, provider: FakeProvider| {
        let clock = env.clock.clone();
        let timers = Timers::open(env.store.clone(), None, clock.clone()).await;
        let providers: Vec<Arc<dyn Provider>> = vec![Arc::new(provider)];
        let (store, timers) = (env.store.clone(), timers.unwrap());
        let opened = Service::open_as(node, store, timers, providers, key_settings(), clock).await;
        opened.unwrap()
    };
    let url = Some("http://there".to_owned());
    let node = NodeSetup::in_slot(folder.path(), "there", url, None).unwrap();
    let owning = open(node, there.clone()).await;
    let secret = with_header("Bearer s3cret");
    let made = owning.create(&alice(), asking_for(secret.clone())).await;
    let sandbox = made.unwrap();
    let instance = sandbox.provider_id.as_deref().unwrap();
    until(|| there.grant(instance).is_some()).await;
    assert_eq!(there.grant(instance).unwrap().policy, secret);
    let reached = there.clone();
    let reach = NodeConnector(Arc::new(move |_, _| {
        let provider: Arc<dyn Provider> = Arc::new(reached.clone());
        Box::pin(async move { Ok(provider) })
    }));
    let node = NodeSetup::in_slot(folder.path(), "here", None, Some(reach)).unwrap();
    let asking = open(node, FakeProvider::new()).await;
    let set = asking
        .set_network(&alice(), sandbox.id.as_str(), secret)
        .await;
    set.unwrap();
    let sent = there.grant(instance).unwrap();
    assert_eq!(sent.sandbox_id, sandbox.id);
    assert!(sent.policy.rules.is_empty() && sent.secrets.is_empty());
    // Nor does the reconciler of one node push to another's place.
    let count = there.count(Verb::SetNetwork);
    asking.sweep().await.unwrap();
    assert_eq!(there.count(Verb::SetNetwork), count);
}

#[tokio::test]
async fn the_network_belongs_to_what_a_repeated_request_asks_for() {
    let env = TestEnv::with_key().await;
    let request = |policy: NetworkPolicy| CreateRequest {
        idempotency_key: Some("once".to_owned()),
        ..asking_for(policy)
    };
    let first = env.make(request(with_header("one"))).await;
    let same = env.make(request(with_header("one"))).await;
    assert_eq!(first.id, same.id);
    let other = env
        .service
        .create(&alice(), request(with_header("two")))
        .await;
    assert_eq!(other.unwrap_err().kind, ErrorKind::Conflict);
}

#[tokio::test]
async fn the_instance_gets_the_policy_without_its_values() {
    let env = TestEnv::with_key().await;
    let sandbox = env.make(asking_for(with_header("Bearer s3cret"))).await;
    let spec = env
        .provider
        .spec_of(sandbox.provider_id.as_deref().unwrap())
        .unwrap();
    assert_eq!(spec.network.allow_out, targets(&["api.example.com"]));
    assert!(spec.network.rules.is_empty());
}
