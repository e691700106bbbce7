//! The breaker: failures of one instance.

use std::time::Duration;

use sandyard_provider::{Condition, ProviderErrorKind, Verb};

use super::breaker::{breaker, open};
use crate::common::{layered, spec};

#[tokio::test(start_paused = true)]
async fn a_broken_instance_does_not_open_the_breaker() {
    let (fake, stack) = layered(breaker);
    let made = stack.create(&spec("one")).await.expect("made");
    // An API may answer with 500 for a single sandbox.
    for verb in [Verb::Resume, Verb::Inspect, Verb::Usage] {
        for nth in 1..=6 {
            fake.fail_nth(verb, nth, ProviderErrorKind::Unavailable);
        }
    }
    for _ in 0..6 {
        stack.resume(&made.id).await.expect_err("broken");
        stack.inspect(&made.id).await.expect_err("broken");
        stack.usage(&made.id).await.expect_err("broken");
    }
    assert_eq!(stack.condition(), Condition::default());
    // When the provider does not answer at all, each of them counts.
    tokio::time::advance(Duration::from_secs(10)).await;
    fake.set_reachable(false);
    for _ in 0..5 {
        stack.inspect(&made.id).await.expect_err("down");
    }
    assert!(!stack.condition().is_reachable);
}

#[tokio::test(start_paused = true)]
async fn a_broken_instance_does_not_keep_the_breaker_open() {
    let (fake, stack) = open().await;
    fake.set_reachable(true);
    tokio::time::advance(Duration::from_secs(5)).await;
    fake.fail_next(Verb::Inspect, ProviderErrorKind::Unavailable);
    stack.inspect("broken").await.expect_err("broken");
    assert!(stack.condition().is_reachable, "the probe succeeded");
}

#[tokio::test(start_paused = true)]
async fn a_slow_listing_is_not_a_failure() {
    let (fake, stack) = layered(breaker);
    fake.delay(Verb::List, Duration::from_secs(100));
    for _ in 0..6 {
        fake.fail_next(Verb::Pause, ProviderErrorKind::TimedOut);
        stack.pause("one").await.expect_err("too long");
    }
    assert!(stack.condition().is_reachable);
    assert_eq!(stack.condition().failures, 0);
    stack.list().await.expect("takes its time");
}

#[tokio::test(start_paused = true)]
async fn many_failures_at_once_cause_one_probe() {
    let (fake, stack) = layered(breaker);
    let gate = fake.hold(Verb::CheckHealth);
    for nth in 1..=20 {
        fake.fail_nth(Verb::Pause, nth, ProviderErrorKind::Unavailable);
    }
    let all: Vec<_> = (0..20)
        .map(|number| {
            let stack = stack.clone();
            tokio::spawn(async move { stack.pause(&number.to_string()).await })
        })
        .collect();
    gate.reached_by(1).await;
    tokio::time::advance(Duration::from_secs(1)).await;
    gate.release();
    for task in all {
        task.await.expect("ends").expect_err("fails");
    }
    assert_eq!(fake.count(Verb::CheckHealth), 1);
}
