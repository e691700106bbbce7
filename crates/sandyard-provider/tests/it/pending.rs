//! A provider that cannot be reached when the server starts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use sandyard_core::Clock;
use sandyard_provider::conformance::{self, Options};
use sandyard_provider::layers::{self, LayerSettings};
use sandyard_provider::prelude::*;
use sandyard_provider::{Pending, ProviderError, ProviderErrorKind, ProviderInfo, Ready};
use sandyard_provider_fake::FakeProvider;

/// A provider that can be reached once `is_there` is set, and the number of attempts.
struct TestEnv {
    fake: FakeProvider,
    is_reachable: Arc<AtomicBool>,
    attempts: Arc<AtomicUsize>,
    pending: Arc<Pending>,
}

fn test_env() -> TestEnv {
    let fake = FakeProvider::new().with_info(|info| info.location = "the real location".to_owned());
    let is_reachable = Arc::new(AtomicBool::new(false));
    let attempts = Arc::new(AtomicUsize::new(0));
    let placeholder = ProviderInfo {
        location: "not connected".to_owned(),
        ..FakeProvider::new().info().clone()
    };
    let connect = {
        let (fake, is_reachable, attempts) = (fake.clone(), is_reachable.clone(), attempts.clone());
        move || {
            let (fake, is_reachable, attempts) =
                (fake.clone(), is_reachable.clone(), attempts.clone());
            async move {
                attempts.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                if is_reachable.load(Ordering::Relaxed) {
                    return Ok(Arc::new(fake) as Arc<dyn Provider>);
                }
                let message = "connection refused";
                Err(ProviderError::new(ProviderErrorKind::Unavailable, message))
            }
        }
    };
    let pending = Pending::new(placeholder, &Clock::manual(7), None, connect);
    TestEnv {
        fake,
        is_reachable,
        attempts,
        pending: Arc::new(pending),
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_are_made_one_at_a_time_and_not_too_often() {
    let test_env = test_env();
    let pending = &test_env.pending;
    let (one, two, three) =
        tokio::join!(pending.list(), pending.check_health(), pending.inspect("x"));
    for error in [one.unwrap_err(), two.unwrap_err(), three.unwrap_err()] {
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ProviderErrorKind::Unavailable, "connection refused")
        );
    }
    assert_eq!(test_env.attempts.load(Ordering::Relaxed), 1);
    let condition = pending.condition();
    assert_eq!(
        (
            condition.is_reachable,
            condition.failures,
            condition.since_ms
        ),
        (false, 1, Some(7))
    );
    assert_eq!(condition.reason.as_deref(), Some("connection refused"));
    assert_eq!(pending.info().location, "not connected");
    test_env.is_reachable.store(true, Ordering::Relaxed);
    pending.list().await.expect_err("not so soon");
    tokio::time::advance(Duration::from_secs(3)).await;
    let (one, two) = tokio::join!(pending.list(), pending.check_health());
    one.expect("it is connected");
    two.expect("it is connected");
    assert_eq!(test_env.attempts.load(Ordering::Relaxed), 2);
    assert_eq!(pending.info().location, "the real location");
    assert!(pending.is_connected() && pending.condition().is_reachable);
}

#[tokio::test(start_paused = true)]
async fn flows_and_the_pool_are_passed_on_after_connecting() {
    let test_env = test_env();
    let mut flows = test_env
        .pending
        .take_flows()
        .expect("before it is connected");
    assert!(test_env.pending.take_flows().is_none(), "once");
    let pool = [Ready {
        template: None,
        count: 3,
    }];
    test_env
        .pending
        .keep_ready(&pool)
        .await
        .expect_err("connection refused");
    test_env.is_reachable.store(true, Ordering::Relaxed);
    tokio::time::advance(Duration::from_secs(3)).await;
    test_env
        .pending
        .check_health()
        .await
        .expect("it is connected");
    assert_eq!(test_env.fake.ready(), 3);
    assert!(test_env.fake.take_flows().is_none(), "they were taken");
    test_env.fake.push_flow(crate::common::flow());
    assert_eq!(flows.recv().await, Some(crate::common::flow()));
}

#[tokio::test]
async fn flows_end_when_it_is_closed_unconnected() {
    let test_env = test_env();
    let mut flows = test_env.pending.take_flows().expect("flows");
    test_env.pending.close().await;
    assert_eq!(flows.recv().await, None);
}

#[tokio::test]
async fn once_connected_it_passes_the_suite_with_layers_around_it() {
    let test_env = test_env();
    test_env.is_reachable.store(true, Ordering::Relaxed);
    let bare = conformance::run(Arc::new(test_env.fake.clone()), &Options::default()).await;
    let stack = layers::stack(
        test_env.pending.clone(),
        LayerSettings::default(),
        Clock::System,
    );
    assert_eq!(stack.info().location, "not connected");
    let report = conformance::run(stack.clone(), &Options::default()).await;
    report.assert();
    assert_eq!(report.passed(), bare.passed(), "\n{report}");
    assert_eq!(stack.info().location, "the real location");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_continues_after_its_caller_gives_up() {
    let fake = FakeProvider::new();
    let connect = {
        let fake = fake.clone();
        move || {
            let fake = fake.clone();
            async move {
                // Longer than the timeout of a health check.
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
