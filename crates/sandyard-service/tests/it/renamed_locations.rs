//! Locations that get another name, and providers that are no longer configured.

use sandyard_core::{Caller, ErrorKind, SandboxStatus};
use sandyard_provider::Verb;
use sandyard_provider::prelude::*;
use sandyard_provider_fake::FakeProvider;
use sandyard_service::{CreateRequest, ServiceSettings};

use crate::harness::{alice, user};
use crate::multi_provider::{MultiProvider, with};

/// Longer than a node counts as there without saying so.
const NODE_GONE_MS: i64 = 11_000;
const GRACE_MS: i64 = 301_000;

/// The same instances under another name of their place.
fn renamed(fake: &FakeProvider) -> FakeProvider {
    let fake = fake.clone();
    fake.with_info(|info| info.location = "e2b:2".to_owned())
}

/// Another server whose `e2b` is this one.
async fn next(env: &MultiProvider, e2b: FakeProvider) -> MultiProvider {
    let fakes = [env.embedded.clone(), env.docker.clone(), e2b];
    MultiProvider::over(
        env.store.clone(),
        env.clock.clone(),
        fakes,
        ServiceSettings::default(),
    )
    .await
}

#[tokio::test]
async fn a_place_with_another_name_keeps_its_sandboxes() {
    let env = MultiProvider::new(ServiceSettings::default()).await;
    let made = env.create(with("e2b")).await.expect("made");
    let next = next(&env, renamed(&env.e2b)).await;
    next.pass(NODE_GONE_MS).await;
    let row = next.row(&made.id).await;
    assert_eq!(
        (row.location.as_str(), row.status),
        ("e2b:2", SandboxStatus::Running)
    );
    assert_eq!(row.provider_id, made.provider_id);
    let events = next.events(&made.id).await;
    let moved = events.iter().find(|event| event.kind == "place_renamed");
    let moved = moved.expect("it is told of");
    assert_eq!(
        moved.data,
        serde_json::json!({"from": "e2b:1", "to": "e2b:2"})
    );
    next.pass(GRACE_MS).await;
    next.pass(GRACE_MS).await;
    assert_eq!(next.instances(), [0, 0, 1]);
    // It can be used, and its timer fires here.
    let name = made.id.as_str();
    next.service
        .pause(&Caller::system(), name, None)
        .await
        .expect("paused");
    next.service
        .delete(&Caller::system(), name)
        .await
        .expect("deleted");
    assert_eq!(next.instances(), [0, 0, 0]);
}

#[tokio::test]
async fn the_timer_of_a_sandbox_goes_with_it() {
    let env = MultiProvider::new(ServiceSettings::default()).await;
    let made = env.create(with("e2b")).await.expect("made");
    let next = next(&env, renamed(&env.e2b)).await;
    next.pass(NODE_GONE_MS).await;
    next.pass(made.timeout_s * 1000 + 1000).await;
    assert_eq!(next.row(&made.id).await.status, SandboxStatus::Paused);
}

#[tokio::test]
async fn a_snapshot_stays_its_owners() {
    let env = MultiProvider::new(ServiceSettings::default()).await;
    let made = env.create(with("e2b")).await.expect("made");
    let snapshot = env
        .service
        .snapshot(&alice(), made.id.as_str(), "mine")
        .await;
    snapshot.expect("kept");
    let next = next(&env, renamed(&env.e2b)).await;
    next.pass(NODE_GONE_MS).await;
    let request = || CreateRequest {
        template: Some("mine".to_owned()),
        ..with("e2b")
    };
    let taken = next.service.create(&user("bob"), request()).await;
    taken.expect_err("it is another's");
    next.create(request()).await.expect("it is hers");
}

#[tokio::test]
async fn what_others_reach_stays_theirs() {
    let env = MultiProvider::new(ServiceSettings::default()).await;
    let made = env.create(with("e2b")).await.expect("made");
    // The same account under two names: each server lists what the other has.
    let next = next(&env, renamed(&env.e2b)).await;
    let nodes = env.store.nodes(0).await.expect("nodes");
    let first = nodes
        .into_iter()
        .find(|node| node.id == env.service.node_id());
    let mut first = first.expect("it is there");
    for _ in 0..40 {
        // It goes on saying that it is there.
        first.seen_ms = env.clock.now_ms();
        env.store.upsert_node(&first).await.expect("said");
        next.pass(9_000).await;
    }
    assert_eq!(next.row(&made.id).await.location, "e2b:1");
    assert_eq!(next.instances(), [0, 0, 1]);
}

#[tokio::test]
async fn a_sandbox_without_its_provider_cannot_be_deleted_and_says_why() {
    let env = MultiProvider::new(ServiceSettings::default()).await;
    let made = env.create(with("e2b")).await.expect("made");
    let other = FakeProvider::new().with_info(|info| {
        info.name = "other".to_owned();
        info.location = "other:1".to_owned();
    });
    let next = next(&env, other).await;
    next.clock.advance_ms(NODE_GONE_MS);
    let deleted = next
        .service
        .delete(&Caller::system(), made.id.as_str())
        .await;
    let error = deleted.expect_err("nobody can");
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert_eq!(
        error.message,
        "provider `e2b` is not among this server's providers"
    );
    assert!(
        error
            .hint
            .expect("what to do")
            .contains("`sandbox.providers`")
    );
    assert_eq!(next.row(&made.id).await.status, SandboxStatus::Running);
    // With its provider it can.
    let old_server = env.second_server(ServiceSettings::default()).await;
    let deleted = old_server
        .service
        .delete(&Caller::system(), made.id.as_str())
        .await;
    assert_eq!(deleted.expect("deleted").status, SandboxStatus::Deleted);
}

#[tokio::test]
async fn a_second_instance_does_not_hide_the_one_that_is_meant() {
    let env = MultiProvider::new(ServiceSettings::default()).await;
    let made = env.create(with("e2b")).await.expect("made");
    let id = made.provider_id.clone().expect("an instance");
    let spec = env.e2b.spec_of(&id).expect("its spec");
    let second = env.e2b.create(&spec).await.expect("a second one");
    env.e2b.pause(&second.id).await.expect("paused");
    let inspects_before = env.e2b.count(Verb::Inspect);
    env.pass(31_000).await;
    assert_eq!(
        env.e2b.count(Verb::Inspect),
        inspects_before,
        "nothing is wrong with it"
    );
    assert_eq!(env.row(&made.id).await.version, made.version);
}
