//! Failures, gates and processes that end, on demand.

use std::time::Duration;

use sandyard_core::Clock;
use sandyard_core::SandboxState::{Paused, Running, Stopped};
use sandyard_provider::ProviderErrorKind::{Failed, NoCapacity, TimedOut, Unavailable};
use sandyard_provider::prelude::*;
use sandyard_provider::{Instance, Verb};
use sandyard_provider_fake::{Call, FakeProvider, VANISHED};

use crate::common::spec;

async fn create(fake: &FakeProvider) -> Instance {
    fake.create(&spec("one")).await.expect("create")
}

#[tokio::test]
async fn the_nth_call_fails_and_the_others_do_not() {
    let fake = FakeProvider::new();
    let id = create(&fake).await.id;
    fake.fail_nth(Verb::Pause, 2, Unavailable);
    fake.fail_next(Verb::Resume, Failed);
    fake.pause(&id).await.expect("the first");
    assert_eq!(fake.resume(&id).await.unwrap_err().kind, Failed);
    assert_eq!(fake.pause(&id).await.unwrap_err().kind, Unavailable);
    fake.pause(&id).await.expect("the third");
    fake.resume(&id).await.expect("the second");
}

#[tokio::test]
async fn a_failed_create_leaves_no_instance_and_a_lost_answer_leaves_one() {
    let fake = FakeProvider::new();
    fake.fail_next(Verb::Create, NoCapacity);
    fake.create(&spec("one")).await.expect_err("fails");
    assert_eq!(fake.instances(), []);
    fake.lose_next_answer(Verb::Create, TimedOut);
    fake.create(&spec("one")).await.expect_err("is lost");
    assert_eq!(fake.list().await.expect("list").len(), 1);
}

#[tokio::test]
async fn a_held_call_waits_for_its_gate() {
    let fake = FakeProvider::new();
    let id = create(&fake).await.id;
    let gate = fake.hold(Verb::Pause);
    let pause = tokio::spawn({
        let (fake, id) = (fake.clone(), id.clone());
        async move { fake.pause(&id).await }
    });
    gate.reached_by(1).await;
    let during = fake.inspect(&id).await.expect("inspect").expect("there");
    assert_eq!(during.state, Running);
    gate.release();
    assert_eq!(pause.await.expect("ends").expect("pause").state, Paused);
    let gate = fake.hold_answer(Verb::Resume);
    let resume = tokio::spawn({
        let (fake, id) = (fake.clone(), id.clone());
        async move { fake.resume(&id).await }
    });
    gate.reached_by(1).await;
    let during = fake.inspect(&id).await.expect("inspect").expect("there");
    assert_eq!(during.state, Running, "done, and not yet answered");
    resume.abort();
    drop(gate);
}

#[tokio::test(start_paused = true)]
async fn a_delay_uses_the_tests_clock() {
    let fake = FakeProvider::new();
    fake.delay(Verb::List, Duration::from_secs(3600));
    let start = tokio::time::Instant::now();
    fake.list().await.expect("list");
    assert_eq!(start.elapsed().as_secs(), 3600);
}

#[tokio::test]
async fn vanished_processes_leave_a_stopped_instance_with_a_reason() {
    let fake = FakeProvider::new().with_clock(Clock::manual(7));
    let one = create(&fake).await;
    assert_eq!(one.created_ms, 7);
    fake.vanish(&one.id);
    let found = fake.inspect(&one.id).await.expect("inspect");
    let found = found.expect("there");
    assert_eq!(
        (found.state, found.reason.as_deref()),
        (Stopped, Some(VANISHED))
    );
    let started = fake.start(&one.id).await.expect("start");
    assert_eq!((started.state, started.reason), (Running, None));
}

#[tokio::test]
async fn clones_share_their_state_and_record_every_call() {
    let fake = FakeProvider::new();
    let other = fake.clone();
    let id = create(&fake).await.id;
    other.set_reachable(false);
    assert_eq!(fake.list().await.unwrap_err().kind, Unavailable);
    other.set_reachable(true);
    fake.delete(&id).await.expect("delete");
    let call = |verb, subject: &str| Call {
        verb,
        subject: subject.to_owned(),
    };
    assert_eq!(
        other.calls(),
        [
            call(Verb::Create, "one"),
            call(Verb::List, ""),
            call(Verb::Delete, &id)
        ]
    );
}

#[tokio::test]
async fn an_orphan_is_listed_and_a_foreign_instance_is_not() {
    let fake = FakeProvider::new();
    let orphan = fake.add_orphan("lost".parse().expect("an id"));
    let foreign = fake.add_foreign_instance();
    let listed = fake.list().await.expect("list");
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].id, orphan);
    fake.delete(&foreign)
        .await
        .expect("not an instance of this installation");
    assert_eq!(fake.instances().len(), 2);
}
