//! Snapshots at E2B of other installations.

use reqwest::Method;
use sandyard_provider::InstanceSpec;
use sandyard_provider::ProviderErrorKind::{Conflict, NotFound, Unsupported};
use sandyard_provider::prelude::*;
use sandyard_providers::E2b;
use serde_json::json;

use crate::e2b::{sh, spec};
use crate::e2b_fake_api::FakeApi;

/// An account may be shared: snapshots of others are neither removed nor given to restricted users.
#[tokio::test]
async fn snapshots_of_other_installations_are_separate() {
    let counterpart = FakeApi::start(&[]).await;
    let provider = counterpart.provider("ours").await;
    let other = counterpart.provider("theirs").await;
    let id = provider.create(&spec(&provider, "one")).await;
    let id = id.expect("create").id;
    let path = format!("/sandboxes/{id}/snapshots");
    let by_hand = json!({"name": "by-hand"});
    counterpart.ask(Method::POST, &path, Some(by_hand)).await;
    let foreign = other.create(&spec(&other, "two")).await;
    let foreign = foreign.expect("create").id;
    sh(&other, &foreign, "echo theirs > ~/file").await;
    sh(&provider, &id, "echo ours > ~/file").await;
    other.snapshot(&foreign, "same").await.expect("snapshot");
    other.snapshot(&foreign, "other").await.expect("snapshot");
    // Each installation has its own snapshot of that name.
    provider.snapshot(&id, "same").await.expect("snapshot");
    let taken = provider.snapshot(&id, "by-hand").await;
    assert_eq!(taken.expect_err("taken").kind, Conflict);
    let names = async |provider: &E2b| -> Vec<String> {
        let all = provider.templates().await.expect("list");
        all.into_iter().map(|one| one.name).collect()
    };
    let instances = names(&provider).await;
    for name in ["same", "by-hand", "sandyard-kept-theirs-same"] {
        assert!(
            instances.iter().any(|one| one == name),
            "{name}: {instances:?}"
        );
    }
    assert!(!instances.iter().any(|one| one == "other"), "{instances:?}");
    for (template, is_restricted, expected) in [
        ("same", true, Some("ours")),
        ("by-hand", true, None),
        ("by-hand", false, Some("")),
        ("other", true, None),
        ("other", false, None),
        ("sandyard-kept-theirs-same", true, None),
    ] {
        let requested = InstanceSpec {
            template: template.to_owned(),
            is_restricted,
            ..spec(&provider, "three")
        };
        match (provider.create(&requested).await, expected) {
            (Ok(made), Some(expected)) => {
                assert_eq!(made.template, template);
                let output = sh(&provider, &made.id, "cat ~/file 2>/dev/null").await;
                assert_eq!(output, expected, "{template}");
                provider.delete(&made.id).await.expect("delete");
            }
            (Err(error), None) => assert_eq!(error.kind, NotFound, "{template}: {error}"),
            (other, _) => panic!("{template}: {other:?}"),
        }
    }
    for (name, kind) in [
        ("by-hand", Unsupported),
        ("sandyard-kept-theirs-same", Unsupported),
        ("other", NotFound),
    ] {
        let refused = provider.remove_template(name).await.expect_err(name);
        assert_eq!(refused.kind, kind, "{name}: {refused}");
    }
    provider.remove_template("same").await.expect("remove");
    assert!(names(&other).await.iter().any(|one| one == "same"));
    for name in ["same", "other"] {
        other.remove_template(name).await.expect("remove");
    }
    let answer = counterpart.ask(Method::GET, "/snapshots", None).await;
    let remaining = answer.as_array().expect("a list");
    assert_eq!(
        remaining.len(),
        1,
        "what was made by hand is there: {answer}"
    );
    let path = format!(
        "/templates/{}",
        remaining[0]["snapshotID"].as_str().expect("an id")
    );
    counterpart.ask(Method::DELETE, &path, None).await;
    provider.delete(&id).await.expect("delete");
    other.delete(&foreign).await.expect("delete");
    counterpart.finish().await;
}
