//! Timers that come due while their provider is away.

use std::time::Duration;

use sandyard_core::SandboxStatus;
use sandyard_provider::{ProviderErrorKind, Verb};
use sandyard_service::{CreateRequest, Sandbox, ServiceSettings};

use crate::multi_provider::{MultiProvider, with};

async fn short(env: &MultiProvider) -> Sandbox {
    let request = CreateRequest {
        timeout: Some(Duration::from_secs(60)),
        ..with("e2b")
    };
    env.create(request).await.expect("made")
}

#[tokio::test]
async fn what_is_over_ends_soon_after_a_long_outage() {
    let env = MultiProvider::new(ServiceSettings::default()).await;
    let made = short(&env).await;
    env.e2b.set_reachable(false);
    for _ in 0..180 {
        env.pass(60_000).await;
    }
    assert!(env.service.dead_timers().await.expect("timers").is_empty());
    assert_eq!(env.row(&made.id).await.status, SandboxStatus::Running);
    env.e2b.set_reachable(true);
    env.pass(60_000).await;
    assert_eq!(env.row(&made.id).await.status, SandboxStatus::Paused);
}

#[tokio::test]
async fn dead_timers_are_revived_when_their_provider_answers_again() {
    let env = MultiProvider::new(ServiceSettings::default()).await;
    let made = short(&env).await;
    for _ in 0..12 {
        env.e2b.fail_next(Verb::Pause, ProviderErrorKind::Failed);
        env.pass(301_000).await;
    }
    assert_eq!(env.service.dead_timers().await.expect("timers").len(), 1);
    env.e2b.set_reachable(false);
    env.notice().await;
    env.e2b.set_reachable(true);
    env.notice().await;
    assert!(env.service.dead_timers().await.expect("timers").is_empty());
    env.pass(1_000).await;
    assert_eq!(env.row(&made.id).await.status, SandboxStatus::Paused);
}
