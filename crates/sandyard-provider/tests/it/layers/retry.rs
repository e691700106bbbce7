//! Which calls are retried, and for how long.

use std::time::Duration;

use sandyard_provider::layers::{BreakerSettings, ChaosSettings, Fault, RetrySettings};
use sandyard_provider::{ProviderErrorKind, Verb};
use tokio::time::Instant;

use crate::common::{layered, spec};

#[tokio::test(start_paused = true)]
async fn temporary_failures_are_retried() {
    let (fake, stack) = layered(|layers| layers.retry = Some(RetrySettings::default()));
    let id = stack.create(&spec("one")).await.expect("create").id;
    fake.fail_nth(Verb::Pause, 1, ProviderErrorKind::Unavailable);
    fake.fail_nth(Verb::Pause, 2, ProviderErrorKind::TimedOut);
    fake.fail_nth(Verb::Pause, 3, ProviderErrorKind::NoCapacity);
    let started = Instant::now();
    stack.pause(&id).await.expect("the fourth time");
    assert_eq!(fake.count(Verb::Pause), 4);
    let max_wait = Duration::from_millis(250 + 500 + 1000);
    assert!(
        started.elapsed() > max_wait / 2 && started.elapsed() <= max_wait,
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn attempts_are_bounded_and_permanent_failures_are_not_retried() {
    let (fake, stack) = layered(|layers| layers.retry = Some(RetrySettings::default()));
    fake.set_reachable(false);
    let error = stack.list().await.expect_err("down");
    assert_eq!(
        (error.kind, fake.count(Verb::List)),
        (ProviderErrorKind::Unavailable, 4)
    );
    fake.set_reachable(true);
    stack.usage("missing").await.expect_err("not found");
    assert_eq!(fake.count(Verb::Usage), 1);
}

#[tokio::test(start_paused = true)]
async fn calls_that_are_not_idempotent_are_not_repeated() {
    let (fake, stack) = layered(|layers| layers.retry = Some(RetrySettings::default()));
    let id = stack.create(&spec("one")).await.expect("create").id;
    fake.set_reachable(false);
    let archive = Box::pin(std::io::Cursor::new(vec![1]));
    stack.create(&spec("two")).await.expect_err("down");
    stack.fork(&id, &spec("two")).await.expect_err("down");
    stack.snapshot(&id, "saved").await.expect_err("down");
    stack
        .import_template("saved", archive)
        .await
        .expect_err("down");
    stack.remove_template("saved").await.expect_err("down");
    let once = |verb, before: usize| assert_eq!(fake.count(verb), before + 1, "{verb}");
    once(Verb::Create, 1);
    once(Verb::Fork, 0);
    once(Verb::Snapshot, 0);
    // The archive is read before the call is sent.
    once(Verb::ImportTemplate, 0);
    once(Verb::RemoveTemplate, 0);
}

#[tokio::test(start_paused = true)]
async fn a_time_to_retry_after_is_respected() {
    let (_, stack) = layered(|layers| {
        layers.retry = Some(RetrySettings::default());
        layers.chaos = Some(ChaosSettings {
            sequence: vec![(Verb::List, Some(Fault::NoCapacity))],
            ..ChaosSettings::default()
        });
    });
    let started = Instant::now();
    stack.list().await.expect("the second time");
    assert_eq!(started.elapsed(), Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn slow_failures_end_the_attempts_early() {
    let (fake, stack) = layered(|layers| layers.retry = Some(RetrySettings::default()));
    fake.set_reachable(false);
    fake.delay(Verb::List, Duration::from_secs(20));
    stack.list().await.expect_err("down");
    assert_eq!(fake.count(Verb::List), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_breaker_rejects_fails_at_once() {
    let (fake, stack) = layered(|layers| {
        layers.retry = Some(RetrySettings::default());
        layers.breaker = Some(BreakerSettings::default());
    });
    fake.set_reachable(false);
    for _ in 0..2 {
        stack.list().await.expect_err("down");
    }
    assert!(!stack.condition().is_reachable);
    let (started, calls) = (Instant::now(), fake.calls().len());
    let error = stack.delete("one").await.expect_err("refused");
    assert!(error.retry_after.is_some(), "{error}");
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert_eq!(fake.calls().len(), calls);
}
