//! E2B, which another Sandyard stands for: the official SDKs cannot tell them apart.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::Method;
use sandyard_core::Limits;
use sandyard_core::SandboxState::{Paused, Running, Stopped};
use sandyard_provider::ProviderErrorKind::{Invalid, NotFound, Unavailable};
use sandyard_provider::conformance::{self, Options, Outcome};
use sandyard_provider::prelude::*;
use sandyard_provider::{InstanceSpec, Retry};
use sandyard_providers::{E2b, E2bConfig};
use serde_json::json;

use crate::agent_client;
use crate::e2b_fake_api::FakeApi;
use crate::env;

/// A debug build on busy cores may take its time.
const PATIENCE: Duration = Duration::from_secs(180);

/// What E2B cannot do, and is not claimed.
const SKIPPED: [&str; 11] = [
    "limits_out_of_range_are_invalid",
    "the_difference_of_a_new_instance_can_be_asked",
    "an_archive_becomes_a_template",
    "what_is_no_archive_is_invalid",
    "a_fork_has_the_files_and_the_difference_tells_them",
    "a_missing_volume_is_not_found",
    "odd_mounts_and_volumes_are_invalid",
    "a_volume_is_deleted_when_no_instance_has_it",
    "a_volume_is_shared_and_outlives_its_instances",
    "stops_and_forks_keep_a_volume",
    "files_are_reached_without_instances",
];

pub(crate) fn spec(provider: &E2b, sandbox_id: &str) -> InstanceSpec {
    InstanceSpec {
        limits: Limits::default(),
        ..env::spec(provider, sandbox_id)
    }
}

/// What a shell line in a sandbox prints.
pub(crate) async fn sh(provider: &E2b, id: &str, line: &str) -> String {
    agent_client::printed(&agent_client::agent(provider, id).await, line).await
}

#[tokio::test]
async fn e2b_is_a_provider_like_any_other() {
    let counterpart = FakeApi::start(&[]).await;
    let strangers = vec![
        counterpart.stranger(json!({})).await,
        counterpart
            .stranger(json!({"sandyard.installation": "another", "sandyard.sandbox": "theirs"}))
            .await,
    ];
    let options = Options {
        limits: Limits::default(),
        foreign_instances: strangers.clone(),
        does_pause_cut_off: true,
    };
    let provider = Arc::new(counterpart.provider("ours").await);
    let report = conformance::run(provider, &options).await;
    report.assert();
    for (name, outcome) in &report.0 {
        let is_skipped = *outcome == Outcome::Skipped;
        assert_eq!(is_skipped, SKIPPED.contains(name), "{name}\n{report}");
    }
    assert_eq!(
        counterpart.sandboxes().await.len(),
        2,
        "strangers are untouched"
    );
    for id in &strangers {
        counterpart.remove(id).await;
    }
    counterpart.finish().await;
}

#[tokio::test]
async fn strangers_are_neither_touched_nor_told_of() {
    let counterpart = FakeApi::start(&[]).await;
    let provider = counterpart.provider("ours").await;
    let theirs = counterpart
        .stranger(json!({"sandyard.installation": "x"}))
        .await;
    assert_eq!(provider.pause(&theirs).await.unwrap_err().kind, NotFound);
    assert_eq!(provider.stop(&theirs).await.unwrap_err().kind, NotFound);
    provider.delete(&theirs).await.expect("nothing to delete");
    let address = agent_client::address(&theirs);
    assert_eq!(provider.agent(&address).await.unwrap_err().kind, NotFound);
    assert_eq!(counterpart.sandboxes().await[0]["state"], "running");
    counterpart.remove(&theirs).await;
    counterpart.finish().await;
}

#[tokio::test]
async fn what_runs_is_kept_while_somebody_lists_it_and_paused_when_nobody_does() {
    let counterpart = FakeApi::start(&[]).await;
    let config = E2bConfig {
        // Long enough for a busy machine to come from one call to the next: half of it is left at least.
        timeout: Duration::from_secs(40),
        ..counterpart.config("ours")
    };
    let provider = E2b::connect(config).await.expect("connect");
    let id = provider
        .create(&spec(&provider, "one"))
        .await
        .expect("create")
        .id;
    sh(
        &provider,
        &id,
        "echo kept > ~/file; sleep 1000 > /dev/null 2>&1 &",
    )
    .await;
    let end = async || counterpart.sandboxes().await[0]["endAt"].clone();
    let (first, began) = (end().await, Instant::now());
    while end().await == first || began.elapsed() < Duration::from_secs(45) {
        assert!(began.elapsed() < PATIENCE, "nobody puts its end off");
        let listed = provider.list().await.expect("list");
        assert_eq!(listed[0].state, Running);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    drop(provider);
    let began = Instant::now();
    while counterpart.sandboxes().await[0]["state"] != "paused" {
        assert!(began.elapsed() < PATIENCE, "nobody pauses it");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    // The next server finds it, with its processes and files.
    let provider = counterpart.provider("ours").await;
    let listed = provider.list().await.expect("list");
    assert_eq!(
        (listed[0].state, listed[0].id.as_str()),
        (Paused, id.as_str())
    );
    assert_eq!(provider.resume(&id).await.expect("resume").state, Running);
    let said = sh(&provider, &id, "cat ~/file; pgrep -c sleep").await;
    assert_eq!(said, "kept\n1");
    // What a rest kept is not in lists, and told all the same.
    assert_eq!(provider.stop(&id).await.expect("stop").state, Stopped);
    for provider in [provider, counterpart.provider("ours").await] {
        for _ in 0..2 {
            assert_eq!(provider.list().await.expect("list")[0].state, Stopped);
        }
    }
    counterpart
        .provider("ours")
        .await
        .delete(&id)
        .await
        .expect("delete");
    counterpart.finish().await;
}

#[tokio::test]
async fn a_wrong_key_is_told_at_once_and_never_shown() {
    let counterpart = FakeApi::start(&[]).await;
    let wrong = format!("e2b_{}", "0123456789".repeat(4));
    let config = E2bConfig {
        api_key: wrong.clone(),
        ..counterpart.config("ours")
    };
    assert!(!format!("{config:?}").contains(&wrong));
    let refused = E2b::connect(config).await.expect_err("refused");
    assert_eq!((refused.kind, refused.retry), (Unavailable, Retry::Never));
    assert!(
        refused
            .hint
            .as_deref()
            .is_some_and(|hint| hint.contains("E2B_API_KEY"))
    );
    assert!(!format!("{refused:?}").contains(&wrong));
    let odd = E2bConfig {
        api_key: "\n".to_owned(),
        ..counterpart.config("ours")
    };
    assert_eq!(E2b::connect(odd).await.expect_err("no key").kind, Invalid);
    let provider = counterpart.provider("ours").await;
    assert!(!format!("{provider:?}").contains(&counterpart.key()));
    assert_eq!(
        counterpart.ask(Method::GET, "/snapshots", None).await,
        json!([])
    );
    counterpart.finish().await;
}
