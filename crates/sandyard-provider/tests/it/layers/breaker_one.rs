//! Trouble of one instance, and whose it is.

use std::time::Duration;

use sandyard_provider::{Condition, ProviderErrorKind, Verb};

use super::breaker::{breaker, open};
use crate::common::{layered, spec};

#[tokio::test(start_paused = true)]
async fn one_broken_instance_does_not_shut_out_the_others() {
    let (fake, stack) = layered(breaker);
    let made = stack.create(&spec("one")).await.expect("made");
    // As an API answers with 500 for one sandbox and no other.
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
    // Where the provider does not answer at all, each of them counts as soon as calls are sent again.
    tokio::time::advance(Duration::from_secs(10)).await;
    fake.set_reachable(false);
    for _ in 0..5 {
        stack.inspect(&made.id).await.expect_err("down");
    }
    assert!(!stack.condition().is_reachable);
}

#[tokio::test(start_paused = true)]
async fn a_broken_instance_does_not_keep_a_provider_shut_out() {
    let (fake, stack) = open().await;
    fake.set_reachable(true);
    tokio::time::advance(Duration::from_secs(5)).await;
    fake.fail_next(Verb::Inspect, ProviderErrorKind::Unavailable);
    stack.inspect("broken").await.expect_err("broken");
    assert!(
        stack.condition().is_reachable,
        "it was asked about the others"
    );
}

#[tokio::test(start_paused = true)]
async fn who_has_much_to_look_at_is_there() {
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
async fn many_failures_at_once_are_looked_into_once() {
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
    for one in all {
        one.await.expect("ends").expect_err("fails");
    }
    assert_eq!(fake.count(Verb::CheckHealth), 1);
}
