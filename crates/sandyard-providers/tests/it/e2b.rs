//! E2B, with another Sandyard as substitute: the official SDKs accept both.

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

/// A debug build on a busy machine is slow.
const TIMEOUT: Duration = Duration::from_secs(180);

/// Checks that E2B cannot pass; it does not claim these capabilities.
const SKIPPED: [&str; 11] = [
    "limits_out_of_range_are_invalid",
    "a_new_instance_has_no_differences",
    "an_archive_becomes_a_template",
    "an_invalid_archive_or_name_is_refused",
    "a_fork_has_the_files_and_the_difference_lists_them",
    "a_missing_volume_is_not_found",
    "bad_mounts_and_volumes_are_invalid",
    "a_volume_is_deleted_when_no_instance_mounts_it",
    "a_volume_is_shared_and_outlives_its_instances",
    "stops_and_forks_keep_a_volume",
    "files_are_accessible_without_instances",
];

pub(crate) fn spec(provider: &E2b, sandbox_id: &str) -> InstanceSpec {
    InstanceSpec {
        limits: Limits::default(),
        ..env::spec(provider, sandbox_id)
    }
}

/// The output of a shell line in a sandbox.
pub(crate) async fn sh(provider: &E2b, id: &str, line: &str) -> String {
    agent_client::printed(&agent_client::agent(provider, id).await, line).await
}

#[tokio::test]
async fn e2b_passes_the_conformance_suite() {
    let counterpart = FakeApi::start(&[]).await;
    let create_foreign_instances = vec![
        counterpart.create_foreign(json!({})).await,
        counterpart
            .create_foreign(
                json!({"sandyard.installation": "another", "sandyard.sandbox": "theirs"}),
            )
            .await,
    ];
    let options = Options {
        limits: Limits::default(),
        foreign_instances: create_foreign_instances.clone(),
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
        "foreign sandboxes are untouched"
    );
    for id in &create_foreign_instances {
        counterpart.remove(id).await;
    }
    counterpart.finish().await;
}

#[tokio::test]
async fn foreign_sandboxes_are_neither_changed_nor_listed() {
    let counterpart = FakeApi::start(&[]).await;
    let provider = counterpart.provider("ours").await;
    let foreign = counterpart
        .create_foreign(json!({"sandyard.installation": "x"}))
        .await;
    assert_eq!(provider.pause(&foreign).await.unwrap_err().kind, NotFound);
    assert_eq!(provider.stop(&foreign).await.unwrap_err().kind, NotFound);
    provider.delete(&foreign).await.expect("nothing to delete");
    let address = agent_client::address(&foreign);
    assert_eq!(provider.agent(&address).await.unwrap_err().kind, NotFound);
    assert_eq!(counterpart.sandboxes().await[0]["state"], "running");
    counterpart.remove(&foreign).await;
    counterpart.finish().await;
}

#[tokio::test]
async fn timeouts_are_extended_while_a_server_lists_sandboxes() {
    let counterpart = FakeApi::start(&[]).await;
    let config = E2bConfig {
        // Long enough for a busy machine to get from one call to the next: at least half of it remains.
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
    let (first, started_at) = (end().await, Instant::now());
    while end().await == first || started_at.elapsed() < Duration::from_secs(45) {
        assert!(
            started_at.elapsed() < TIMEOUT,
            "the timeout is not extended"
        );
        let instances = provider.list().await.expect("list");
        assert_eq!(instances[0].state, Running);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    drop(provider);
    let started_at = Instant::now();
    while counterpart.sandboxes().await[0]["state"] != "paused" {
        assert!(started_at.elapsed() < TIMEOUT, "it is not paused");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    // The next server finds it, with its processes and files.
    let provider = counterpart.provider("ours").await;
    let instances = provider.list().await.expect("list");
    assert_eq!(
        (instances[0].state, instances[0].id.as_str()),
        (Paused, id.as_str())
    );
    assert_eq!(provider.resume(&id).await.expect("resume").state, Running);
    let output = sh(&provider, &id, "cat ~/file; pgrep -c sleep").await;
    assert_eq!(output, "kept\n1");
    // What a pause retained is not in lists, but is reported nevertheless.
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
async fn a_wrong_key_is_reported_at_once_and_never_shown() {
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
    let invalid = E2bConfig {
        api_key: "\n".to_owned(),
        ..counterpart.config("ours")
    };
    assert_eq!(
        E2b::connect(invalid).await.expect_err("no key").kind,
        Invalid
    );
    let provider = counterpart.provider("ours").await;
    assert!(!format!("{provider:?}").contains(&counterpart.key()));
    assert_eq!(
        counterpart.ask(Method::GET, "/snapshots", None).await,
        json!([])
    );
    counterpart.finish().await;
}
