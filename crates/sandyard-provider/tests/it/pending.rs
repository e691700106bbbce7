//! A provider that cannot be reached when the server begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use sandyard_core::Clock;
use sandyard_provider::conformance::{self, Options};
use sandyard_provider::layers::{self, LayerSettings};
use sandyard_provider::prelude::*;
use sandyard_provider::{Pending, ProviderError, ProviderErrorKind, ProviderInfo, Ready};
use sandyard_provider_fake::FakeProvider;

/// A provider that is there once it is said to be, and how often it was tried.
struct Late {
    fake: FakeProvider,
    is_there: Arc<AtomicBool>,
    attempts: Arc<AtomicUsize>,
    pending: Arc<Pending>,
}

fn late() -> Late {
    let fake = FakeProvider::new().with_info(|info| info.location = "the real place".to_owned());
    let is_there = Arc::new(AtomicBool::new(false));
    let attempts = Arc::new(AtomicUsize::new(0));
    let placeholder = ProviderInfo {
        location: "unknown yet".to_owned(),
        ..FakeProvider::new().info().clone()
    };
    let connect = {
        let (fake, is_there, attempts) = (fake.clone(), is_there.clone(), attempts.clone());
        move || {
            let (fake, is_there, attempts) = (fake.clone(), is_there.clone(), attempts.clone());
            async move {
                attempts.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                if is_there.load(Ordering::Relaxed) {
                    return Ok(Arc::new(fake) as Arc<dyn Provider>);
                }
                let message = "nobody is there";
                Err(ProviderError::new(ProviderErrorKind::Unavailable, message))
            }
        }
    };
    let pending = Pending::new(placeholder, &Clock::manual(7), None, connect);
    Late {
        fake,
        is_there,
        attempts,
        pending: Arc::new(pending),
    }
}

#[tokio::test(start_paused = true)]
async fn one_call_tries_at_a_time_and_not_too_often() {
    let late = late();
    let pending = &late.pending;
    let (one, two, three) =
        tokio::join!(pending.list(), pending.check_health(), pending.inspect("x"));
    for error in [one.unwrap_err(), two.unwrap_err(), three.unwrap_err()] {
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ProviderErrorKind::Unavailable, "nobody is there")
        );
    }
    assert_eq!(late.attempts.load(Ordering::Relaxed), 1);
    let condition = pending.condition();
    assert_eq!(
        (
            condition.is_reachable,
            condition.failures,
            condition.since_ms
        ),
        (false, 1, Some(7))
    );
    assert_eq!(condition.reason.as_deref(), Some("nobody is there"));
    assert_eq!(pending.info().location, "unknown yet");
    late.is_there.store(true, Ordering::Relaxed);
    pending.list().await.expect_err("not so soon");
    tokio::time::advance(Duration::from_secs(3)).await;
    let (one, two) = tokio::join!(pending.list(), pending.check_health());
    one.expect("it is there");
    two.expect("it is there");
    assert_eq!(late.attempts.load(Ordering::Relaxed), 2);
    assert_eq!(pending.info().location, "the real place");
    assert!(pending.is_connected() && pending.condition().is_reachable);
}

#[tokio::test(start_paused = true)]
async fn flows_and_ready_ones_are_made_up_for() {
    let late = late();
    let mut flows = late.pending.take_flows().expect("before it is connected");
    assert!(late.pending.take_flows().is_none(), "once");
    let pool = [Ready {
        template: None,
        count: 3,
    }];
    late.pending
        .keep_ready(&pool)
        .await
        .expect_err("nobody is there");
    late.is_there.store(true, Ordering::Relaxed);
    tokio::time::advance(Duration::from_secs(3)).await;
    late.pending.check_health().await.expect("it is there");
    assert_eq!(late.fake.ready(), 3);
    assert!(late.fake.take_flows().is_none(), "they were taken");
    late.fake.push_flow(crate::common::flow());
    assert_eq!(flows.recv().await, Some(crate::common::flow()));
}

#[tokio::test]
async fn flows_end_when_it_is_closed_unconnected() {
    let late = late();
    let mut flows = late.pending.take_flows().expect("flows");
    late.pending.close().await;
    assert_eq!(flows.recv().await, None);
}

#[tokio::test]
async fn once_connected_it_passes_the_suite_with_layers_around_it() {
    let late = late();
    late.is_there.store(true, Ordering::Relaxed);
    let bare = conformance::run(Arc::new(late.fake.clone()), &Options::default()).await;
    let stack = layers::stack(
        late.pending.clone(),
        LayerSettings::default(),
        Clock::System,
    );
    assert_eq!(stack.info().location, "unknown yet");
    let report = conformance::run(stack.clone(), &Options::default()).await;
    report.assert();
    assert_eq!(report.passed(), bare.passed(), "\n{report}");
    assert_eq!(stack.info().location, "the real place");
}

#[tokio::test(start_paused = true)]
async fn connecting_goes_on_when_whoever_waits_gives_up() {
    let fake = FakeProvider::new();
    let connect = {
        let fake = fake.clone();
        move || {
            let fake = fake.clone();
            async move {
                // Longer than an answer to whether it is there may take.
                tokio::time::sleep(Duration::from_secs(8)).await;
                Ok(Arc::new(fake) as Arc<dyn Provider>)
            }
        }
    };
    let pending = Pending::new(fake.info().clone(), &Clock::manual(7), None, connect);
    let pending = Arc::new(pending);
    let stack = layers::stack(
        pending.clone(),
        LayerSettings {
            retry: None,
            ..LayerSettings::default()
        },
        Clock::manual(7),
    );
    for _ in 0..2 {
        let _ = stack.check_health().await;
    }
    assert!(pending.is_connected());
}
