//! What sandboxes used recently.

use sandyard_core::{ErrorKind, SandboxState};
use sandyard_provider::Verb;

use crate::harness::{TestEnv, alice, user};

#[tokio::test]
async fn the_history_of_use_is_its_owners_and_wakes_nothing() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let name = sandbox.id.as_str();
    let service = &env.service;
    let all = service.usage_history(&alice(), name, 0, i64::MAX).await;
    let all = all.unwrap();
    assert!(!all.is_empty());
    let first = all[0].at_ms;
    let one = service.usage_history(&alice(), name, first, first).await;
    assert_eq!(one.unwrap(), all[..1]);
    let bob = user("bob");
    let error = service.usage_history(&bob, name, 0, i64::MAX).await;
    assert_eq!(error.unwrap_err().kind, ErrorKind::SandboxNotFound);
    let provider_id = sandbox.provider_id.clone().unwrap();
    sandyard_provider::Instances::pause(&env.provider, &provider_id)
        .await
        .unwrap();
    let paused = service.usage_history(&alice(), name, 0, i64::MAX).await;
    assert!(!paused.unwrap().is_empty());
    let instance = sandyard_provider::Instances::inspect(&env.provider, &provider_id).await;
    assert_eq!(instance.unwrap().unwrap().state, SandboxState::Paused);
}

#[tokio::test]
async fn a_place_without_history_says_so() {
    let env = TestEnv::new().await;
    let forgetful = env
        .provider
        .clone()
        .with_info(|info| info.capabilities.can_recall_usage = false);
    let env = env.over(forgetful).await;
    let sandbox = env.create().await;
    let history = env
        .service
        .usage_history(&alice(), sandbox.id.as_str(), 0, i64::MAX)
        .await;
    assert_eq!(history.unwrap_err().kind, ErrorKind::Unsupported);
    assert_eq!(env.provider.count(Verb::UsageHistory), 0);
}
