//! Timers that come due while their provider is away.

use std::time::Duration;

use sandyard_core::SandboxStatus;
use sandyard_provider::{ProviderErrorKind, Verb};
use sandyard_service::{CreateRequest, Sandbox, ServiceSettings};

use crate::several::{Several, with};

async fn short(yard: &Several) -> Sandbox {
    let request = CreateRequest {
        timeout: Some(Duration::from_secs(60)),
        ..with("e2b")
    };
    yard.create(request).await.expect("made")
}

#[tokio::test]
async fn what_is_over_ends_soon_after_a_long_outage() {
    let yard = Several::new(ServiceSettings::default()).await;
    let made = short(&yard).await;
    yard.e2b.set_reachable(false);
    for _ in 0..180 {
        yard.pass(60_000).await;
    }
    assert!(yard.service.dead_timers().await.expect("timers").is_empty());
    assert_eq!(yard.row(&made.id).await.status, SandboxStatus::Running);
    yard.e2b.set_reachable(true);
    yard.pass(60_000).await;
    assert_eq!(yard.row(&made.id).await.status, SandboxStatus::Paused);
}

#[tokio::test]
async fn timers_that_were_given_up_get_another_chance_when_their_provider_answers_again() {
    let yard = Several::new(ServiceSettings::default()).await;
    let made = short(&yard).await;
    for _ in 0..12 {
        yard.e2b.fail_next(Verb::Pause, ProviderErrorKind::Failed);
        yard.pass(301_000).await;
    }
    assert_eq!(yard.service.dead_timers().await.expect("timers").len(), 1);
    yard.e2b.set_reachable(false);
    yard.notice().await;
    yard.e2b.set_reachable(true);
    yard.notice().await;
    assert!(yard.service.dead_timers().await.expect("timers").is_empty());
    yard.pass(1_000).await;
    assert_eq!(yard.row(&made.id).await.status, SandboxStatus::Paused);
}
