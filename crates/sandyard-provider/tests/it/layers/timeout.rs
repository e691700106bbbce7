//! Calls that take too long.

use std::time::Duration;

use sandyard_provider::layers::TimeoutSettings;
use sandyard_provider::{ProviderErrorKind, Retry, Verb};
use tokio::time::Instant;

use crate::common::{layered, spec};

#[tokio::test(start_paused = true)]
async fn a_hanging_call_ends_after_the_timeout_of_its_kind() {
    let settings = TimeoutSettings::default();
    let (fake, stack) = layered(|layers| layers.timeout = Some(TimeoutSettings::default()));
    let hanging = [
        Verb::CheckHealth,
        Verb::List,
        Verb::Inspect,
        Verb::Delete,
        Verb::Create,
    ];
    let _gates = hanging.map(|verb| fake.hold(verb));
    let started = Instant::now();
    let health = stack.check_health().await.expect_err("hangs");
    assert_eq!(started.elapsed(), settings.health);
    assert_eq!(
        (health.kind, health.retry),
        (ProviderErrorKind::TimedOut, Retry::Later)
    );
    assert_eq!(
        health.message,
        "provider `fake` did not answer `check_health` within 5 s"
    );
    let started = Instant::now();
    stack.list().await.expect_err("hangs");
    assert_eq!(started.elapsed(), settings.list);
    let started = Instant::now();
    stack.inspect("one").await.expect_err("hangs");
    assert_eq!(started.elapsed(), settings.read);
    let started = Instant::now();
    stack.delete("one").await.expect_err("hangs");
    assert_eq!(started.elapsed(), settings.change);
    let started = Instant::now();
    stack.create(&spec("one")).await.expect_err("hangs");
    assert_eq!(started.elapsed(), settings.long);
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_in_time_is_an_answer() {
    let (fake, stack) = layered(|layers| layers.timeout = Some(TimeoutSettings::default()));
    // A list of a hundred pages.
    fake.delay(Verb::List, Duration::from_secs(200));
    stack.list().await.expect("in time");
    let made = stack.create(&spec("one")).await.expect("made");
    // A comparison reads all files of an instance.
    fake.delay(Verb::Diff, Duration::from_secs(600));
    stack.diff(&made.id).await.expect("in time");
}
