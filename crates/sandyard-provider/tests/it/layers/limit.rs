//! Slots of each kind of call.

use std::time::Duration;

use sandyard_provider::layers::{LayerSettings, LimitSettings, TimeoutSettings};
use sandyard_provider::{ProviderErrorKind, Retry, Verb};
use tokio::time::Instant;

use crate::common::{layered, spec};

fn one_at_a_time(layers: &mut LayerSettings) {
    layers.limit = Some(LimitSettings {
        create: 1,
        copy: 1,
        change: 1,
        read: 1,
        ..LimitSettings::default()
    });
}

#[tokio::test(start_paused = true)]
async fn hanging_creates_delay_neither_deletes_nor_reads() {
    let (fake, stack) = layered(one_at_a_time);
    let gate = fake.hold(Verb::Create);
    let first = tokio::spawn({
        let stack = stack.clone();
        async move { stack.create(&spec("one")).await }
    });
    gate.reached_by(1).await;
    let started = Instant::now();
    stack.delete("missing").await.expect("its own slot");
    stack.list().await.expect("its own slot");
    let missing = stack
        .snapshot("missing", "copy")
        .await
        .expect_err("missing");
    assert_eq!(missing.kind, ProviderErrorKind::NotFound, "its own slot");
    stack.check_health().await.expect("needs no slot");
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert_eq!(stack.condition().calls, 1);
    let second = stack.create(&spec("two")).await.expect_err("no slot");
    assert_eq!(started.elapsed(), LimitSettings::default().long_wait);
    assert_eq!(
        (second.kind, second.retry),
        (ProviderErrorKind::NoCapacity, Retry::Later)
    );
    assert_eq!(
        second.message,
        "provider `fake` is busy: `create` waited 180 s for a free slot"
    );
    assert_eq!(fake.count(Verb::Create), 1, "the provider was not called");
    gate.release();
    first.await.expect("ends").expect("create");
    assert_eq!(stack.condition().calls, 0);
}

#[tokio::test(start_paused = true)]
async fn a_read_without_a_slot_is_unavailable_and_a_dropped_one_frees_its_slot() {
    let (fake, stack) = layered(one_at_a_time);
    let gate = fake.hold(Verb::List);
    let stuck = tokio::spawn({
        let stack = stack.clone();
        async move { stack.list().await }
    });
    gate.reached_by(1).await;
    let other = stack.inspect("missing").await.expect_err("no slot");
    assert_eq!(other.kind, ProviderErrorKind::Unavailable);
    stuck.abort();
    assert!(stuck.await.expect_err("dropped").is_cancelled());
    stack.inspect("missing").await.expect("the slot is free");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_times_out_frees_its_slot() {
    let (fake, stack) = layered(|layers| {
        one_at_a_time(layers);
        layers.timeout = Some(TimeoutSettings {
            list: Duration::from_secs(1),
            ..TimeoutSettings::default()
        });
    });
    let _gate = fake.hold(Verb::List);
    let (first, second, third) = tokio::join!(stack.list(), stack.list(), stack.inspect("missing"));
    assert_eq!(first.expect_err("hangs").kind, ProviderErrorKind::TimedOut);
    assert_eq!(second.expect_err("hangs").kind, ProviderErrorKind::TimedOut);
    third.expect("gets the slot");
}
