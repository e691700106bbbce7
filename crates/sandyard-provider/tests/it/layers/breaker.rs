//! The breaker: it opens when a provider does not answer, and closes when it answers again.

use std::sync::Arc;
use std::time::Duration;

use sandyard_core::Clock;
use sandyard_provider::layers::{self, BreakerSettings, LayerSettings, LimitSettings};
use sandyard_provider::prelude::*;
use sandyard_provider::{Condition, Pending, ProviderError, ProviderErrorKind, Retry, Verb};
use sandyard_provider_fake::FakeProvider;

use crate::common::{layered, spec};

pub(super) fn breaker(layers: &mut LayerSettings) {
    layers.breaker = Some(BreakerSettings::default());
}

async fn fail(stack: &Arc<dyn Provider>, times: usize) {
    for _ in 0..times {
        stack.list().await.expect_err("down");
    }
}

/// A stack with an open breaker: its provider did not answer five times.
pub(super) async fn open() -> (FakeProvider, Arc<dyn Provider>) {
    let (fake, stack) = layered(breaker);
    fake.set_reachable(false);
    fail(&stack, 5).await;
    (fake, stack)
}

#[tokio::test(start_paused = true)]
async fn five_consecutive_failures_open_the_breaker() {
    let (fake, stack) = layered(breaker);
    fake.set_reachable(false);
    fail(&stack, 4).await;
    assert!(stack.condition().is_reachable);
    assert_eq!(stack.condition().failures, 4);
    fake.set_reachable(true);
    stack.list().await.expect("an answer");
    assert_eq!(stack.condition(), Condition::default());
    fake.set_reachable(false);
    fail(&stack, 5).await;
    let condition = stack.condition();
    assert_eq!((condition.is_reachable, condition.failures), (false, 5));
    assert_eq!(condition.since_ms, Some(7));
    assert_eq!(
        condition.reason.as_deref(),
        Some("`list` failed as the test requested")
    );
    tokio::time::advance(Duration::from_secs(2)).await;
    let calls = fake.calls().len();
    let error = stack.delete("one").await.expect_err("refused");
    assert_eq!(fake.calls().len(), calls, "the provider was not called");
    assert_eq!(error.kind, ProviderErrorKind::Unavailable);
    assert_eq!(error.retry_after, Some(Duration::from_secs(3)));
    assert_eq!(
        error.message,
        "provider `fake` has not answered for 2 s; it is tried again in 3 s"
    );
}

#[tokio::test(start_paused = true)]
async fn a_trial_that_fails_doubles_the_pause_and_one_that_works_ends_it() {
    let (fake, stack) = open().await;
    for pause in [5, 10, 20, 40, 60, 60] {
        tokio::time::advance(Duration::from_millis(pause * 1000 - 1)).await;
        let calls = fake.calls().len();
        fail(&stack, 1).await;
        assert_eq!(fake.calls().len(), calls, "before {pause} s are over");
        tokio::time::advance(Duration::from_millis(1)).await;
        fail(&stack, 3).await;
        assert_eq!(fake.calls().len(), calls + 1, "one trial after {pause} s");
    }
    fake.set_reachable(true);
    tokio::time::advance(Duration::from_secs(60)).await;
    stack.check_health().await.expect("it is back");
    assert_eq!(stack.condition().failures, 0);
    assert!(stack.condition().is_reachable);
    fake.set_reachable(false);
    fail(&stack, 5).await;
    assert!(!stack.condition().is_reachable);
    tokio::time::advance(Duration::from_secs(5)).await;
    fake.set_reachable(true);
    stack.list().await.expect("the pause is a short one again");
}

#[tokio::test(start_paused = true)]
async fn one_trial_at_a_time_and_a_dropped_trial_allows_the_next() {
    let (fake, stack) = open().await;
    fake.set_reachable(true);
    tokio::time::advance(Duration::from_secs(5)).await;
    let gate = fake.hold(Verb::Inspect);
    let trial = tokio::spawn({
        let stack = stack.clone();
        async move { stack.inspect("one").await }
    });
    gate.reached_by(1).await;
    stack.check_health().await.expect("is never refused");
    let other = stack.list().await.expect_err("a trial is in progress");
    assert!(
        other.message.ends_with("it is being tried again now"),
        "{other}"
    );
    trial.abort();
    trial.await.expect_err("dropped");
    stack.list().await.expect("the next trial");
}

#[tokio::test(start_paused = true)]
async fn a_create_is_preceded_by_a_health_check() {
    let (fake, stack) = open().await;
    tokio::time::advance(Duration::from_secs(5)).await;
    stack.create(&spec("one")).await.expect_err("still down");
    assert_eq!(
        (fake.count(Verb::Create), fake.count(Verb::CheckHealth)),
        (0, 1)
    );
    fake.set_reachable(true);
    stack
        .create(&spec("one"))
        .await
        .expect_err("the pause begins anew");
    tokio::time::advance(Duration::from_secs(10)).await;
    stack.create(&spec("one")).await.expect("it is back");
    assert_eq!(
        (fake.count(Verb::Create), fake.count(Verb::CheckHealth)),
        (1, 2)
    );
}

#[tokio::test(start_paused = true)]
async fn failures_other_than_silence_are_answers() {
    let (fake, stack) = layered(breaker);
    for _ in 0..5 {
        fake.fail_next(Verb::List, ProviderErrorKind::TimedOut);
        stack.list().await.expect_err("no answer");
        fake.fail_next(Verb::List, ProviderErrorKind::Failed);
        stack.list().await.expect_err("an answer");
    }
    assert_eq!(stack.condition().failures, 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_slot_is_not_a_failure_of_the_provider() {
    let (fake, stack) = layered(|layers| {
        breaker(layers);
        layers.limit = Some(LimitSettings {
            read: 1,
            ..LimitSettings::default()
        });
    });
    let gate = fake.hold(Verb::List);
    let stuck = tokio::spawn({
        let stack = stack.clone();
        async move { stack.list().await }
    });
    gate.reached_by(1).await;
    for _ in 0..6 {
        let error = stack.inspect("one").await.expect_err("no slot");
        assert!(error.message.contains("is busy"), "{error}");
    }
    assert_eq!(stack.condition().failures, 0);
    gate.release();
    stuck.await.expect("ends").expect("list");
}

#[tokio::test(start_paused = true)]
async fn a_long_call_is_not_a_trial_and_blocks_no_other_call() {
    let (fake, stack) = layered(breaker);
    let made = stack.create(&spec("one")).await.expect("made");
    fake.set_reachable(false);
    fail(&stack, 5).await;
    fake.set_reachable(true);
    tokio::time::advance(Duration::from_secs(5)).await;
    let gate = fake.hold(Verb::Snapshot);
    let long = tokio::spawn({
        let (stack, id) = (stack.clone(), made.id.clone());
        async move { stack.snapshot(&id, "big").await }
    });
    gate.reached_by(1).await;
    stack.check_health().await.expect("it is back");
    stack.list().await.expect("it is back");
    assert!(stack.condition().is_reachable);
    gate.release();
    long.await.expect("ends").expect("snapshot");
}

#[tokio::test(start_paused = true)]
async fn health_checks_pass_an_open_breaker() {
    let (fake, stack) = open().await;
    let error = stack.check_health().await.expect_err("down");
    assert_eq!(
        error.retry_after, None,
        "the provider's own message: {error}"
    );
    assert_eq!(fake.count(Verb::CheckHealth), 1);
    fake.set_reachable(true);
    stack.check_health().await.expect("it is back");
    assert_eq!(
        fake.calls().last().map(|call| call.verb),
        Some(Verb::List),
        "and lists its instances"
    );
    let condition = stack.condition();
    assert_eq!((condition.is_reachable, condition.failures), (true, 0));
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_answers_only_health_checks_opens_the_breaker() {
    let (fake, stack) = layered(breaker);
    for _ in 0..5 {
        stack.check_health().await.expect("health checks succeed");
        fake.fail_next(Verb::List, ProviderErrorKind::TimedOut);
        stack.list().await.expect_err("hangs");
    }
    assert!(!stack.condition().is_reachable);
    for _ in 0..3 {
        stack.check_health().await.expect("too soon to try more");
        stack.create(&spec("one")).await.expect_err("refused");
    }
    tokio::time::advance(Duration::from_secs(5)).await;
    fake.fail_next(Verb::List, ProviderErrorKind::TimedOut);
    stack.create(&spec("one")).await.expect_err("still stuck");
    tokio::time::advance(Duration::from_secs(10)).await;
    fake.fail_next(Verb::List, ProviderErrorKind::TimedOut);
    stack.check_health().await.expect_err("still stuck");
    assert!(!stack.condition().is_reachable);
    assert_eq!(fake.count(Verb::Create), 0);
    tokio::time::advance(Duration::from_secs(20)).await;
    stack.create(&spec("one")).await.expect("it works again");
    assert_eq!(stack.condition().failures, 0);
}

#[tokio::test(start_paused = true)]
async fn failures_of_one_instance_do_not_open_the_breaker() {
    let (fake, stack) = layered(breaker);
    for _ in 0..6 {
        fake.fail_next(Verb::Create, ProviderErrorKind::TimedOut);
        stack.create(&spec("one")).await.expect_err("too long");
        fake.fail_next(Verb::Pause, ProviderErrorKind::TimedOut);
        stack.pause("one").await.expect_err("too long");
    }
    assert_eq!(stack.condition(), Condition::default());
    // The number of probes is bounded.
    assert_eq!(fake.count(Verb::List), 5);
    tokio::time::advance(Duration::from_secs(10)).await;
    // The failures count when the probes fail, too.
    for _ in 0..5 {
        fake.fail_next(Verb::Create, ProviderErrorKind::TimedOut);
        fake.fail_next(Verb::List, ProviderErrorKind::TimedOut);
        stack.create(&spec("one")).await.expect_err("too long");
    }
    assert!(!stack.condition().is_reachable);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_an_answer() {
    for answer in [
        || ProviderError {
            retry: Retry::Never,
            ..ProviderError::new(ProviderErrorKind::Unavailable, "the key is refused")
        },
        || {
            ProviderError::new(ProviderErrorKind::Unavailable, "too many requests")
                .retry_after(Duration::from_secs(7))
        },
    ] {
        let pending = Pending::new(
            FakeProvider::new().info().clone(),
            &Clock::manual(7),
            None,
            move || async move { Err(answer()) },
        );
        let mut settings = LayerSettings::none();
        breaker(&mut settings);
        let stack = layers::stack(Arc::new(pending), settings, Clock::manual(7));
        for _ in 0..6 {
            let error = stack.list().await.expect_err("refused");
            assert_eq!(error.message, answer().message);
        }
    }
}
