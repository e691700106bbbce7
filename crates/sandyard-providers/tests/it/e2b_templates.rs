//! Snapshots at E2B: saved, found, removed, and addressed by their names only.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use reqwest::Method;
use sandyard_provider::InstanceSpec;
use sandyard_provider::ProviderErrorKind::{Conflict, Invalid, NotFound, Unsupported};
use sandyard_provider::prelude::*;
use sandyard_providers::E2b;
use serde_json::{Value, json};

use crate::e2b::{sh, spec};
use crate::e2b_fake_api::FakeApi;

#[tokio::test]
async fn snapshots_are_saved_found_and_removed_and_forks_leave_none() {
    let counterpart = FakeApi::start(&[]).await;
    let provider = counterpart.provider("ours").await;
    let id = provider
        .create(&spec(&provider, "one"))
        .await
        .expect("create")
        .id;
    sh(&provider, &id, "echo kept > ~/file").await;
    for name in ["", "..", "a/b", "a\0b", "-a"] {
        assert_eq!(
            provider.snapshot(&id, name).await.unwrap_err().kind,
            Invalid
        );
    }
    provider
        .snapshot(&id, "snapshot-of-mine")
        .await
        .expect("snapshot");
    let taken = provider.snapshot(&id, "snapshot-of-mine").await;
    assert_eq!(taken.unwrap_err().kind, Conflict);
    let names: Vec<_> = provider.templates().await.expect("list");
    let names: Vec<_> = names.into_iter().map(|one| one.name).collect();
    assert!(names.contains(&"snapshot-of-mine".to_owned()), "{names:?}");
    assert!(names.contains(&"base".to_owned()), "{names:?}");
    let copy = InstanceSpec {
        template: "snapshot-of-mine".to_owned(),
        ..spec(&provider, "two")
    };
    let copy = provider.create(&copy).await.expect("create from it");
    assert_eq!(copy.template, "snapshot-of-mine");
    assert_eq!(sh(&provider, &copy.id, "cat ~/file").await, "kept");
    let fork = provider
        .fork(&id, &spec(&provider, "three"))
        .await
        .expect("fork");
    assert_eq!(fork.template, "base");
    assert_eq!(sh(&provider, &fork.id, "cat ~/file").await, "kept");
    assert_eq!(
        provider.remove_template("base").await.unwrap_err().kind,
        Invalid
    );
    provider
        .remove_template("snapshot-of-mine")
        .await
        .expect("remove");
    let second = provider.remove_template("snapshot-of-mine").await;
    assert_eq!(second.unwrap_err().kind, NotFound);
    let archive = Box::pin(std::io::Cursor::new(Vec::new()));
    let imported = provider.import_template("mine", archive).await;
    assert_eq!(imported.unwrap_err().kind, Unsupported);
    for id in [&id, &copy.id, &fork.id] {
        provider.delete(id).await.expect("delete");
    }
    counterpart.finish().await;
}

/// A server that crashed during a fork leaves a snapshot; another server of its installation removes it.
#[tokio::test]
async fn temporary_snapshots_of_a_crash_are_swept() {
    let counterpart = FakeApi::start(&[]).await;
    let mut config = counterpart.config("ours");
    // No call needs a temporary snapshot for longer than twice this.
    config.timeouts.copy = Duration::from_secs(1);
    let provider = E2b::connect(config).await.expect("connect");
    let requested = InstanceSpec {
        metadata: BTreeMap::from([("team".to_owned(), "blue".to_owned())]),
        ..spec(&provider, "one")
    };
    let id = provider.create(&requested).await.expect("create").id;
    assert_eq!(counterpart.sandboxes().await[0]["metadata"]["team"], "blue");
    let path = format!("/sandboxes/{id}/snapshots");
    let others = [
        "sandyard-fork-theirs-1000-7",
        "sandyard-fork-ours-99999999999999-7",
        "sandyard-fork-ours",
        "kept",
    ];
    for name in others.iter().chain(&["sandyard-fork-ours-1000-7"]) {
        let requested = json!({"name": name});
        counterpart.ask(Method::POST, &path, Some(requested)).await;
    }
    let names = async || -> Vec<String> {
        let answer = counterpart.ask(Method::GET, "/snapshots", None).await;
        let all = answer.as_array().expect("a list").iter();
        let name = |snapshot: &Value| snapshot["names"][0].as_str().expect("a name").to_owned();
        let mut names: Vec<_> = all.map(name).collect();
        names.sort();
        names
    };
    let is_left = |name: &String| name.contains("sandyard-fork-ours-1000-7");
    assert!(names().await.iter().any(is_left));
    let give_up = Instant::now() + Duration::from_secs(180);
    while names().await.iter().any(is_left) {
        assert!(Instant::now() < give_up, "it remains");
        provider.list().await.expect("list");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(names().await.len(), others.len());
    let answer = counterpart.ask(Method::GET, "/snapshots", None).await;
    for one in answer.as_array().expect("a list") {
        let path = format!("/templates/{}", one["snapshotID"].as_str().expect("an id"));
        counterpart.ask(Method::DELETE, &path, None).await;
    }
    provider.delete(&id).await.expect("delete");
    counterpart.finish().await;
}

/// The service knows the owner of a name, but not that of an id, a team or a tag.
#[tokio::test]
async fn a_snapshot_is_addressed_by_its_name_only() {
    let counterpart = FakeApi::start(&[]).await;
    let provider = counterpart.provider("ours").await;
    let id = provider
        .create(&spec(&provider, "one"))
        .await
        .expect("create")
        .id;
    let from = async |template: &str| {
        let template = template.to_owned();
        let spec = spec(&provider, "two");
        provider.create(&InstanceSpec { template, ..spec }).await
    };
    // Read before the snapshot exists, so that the cached lists are outdated.
    from("missing").await.expect_err("missing");
    provider.snapshot(&id, "kept").await.expect("snapshot");
    let answer = counterpart.ask(Method::GET, "/snapshots", None).await;
    let (full, own) = (&answer[0]["names"][0], &answer[0]["snapshotID"]);
    let (full, own) = (full.as_str().expect("a name"), own.as_str().expect("an id"));
    let bare = own.split(':').next().expect("an id");
    let team = full.split(':').next().expect("a name");
    for invalid in [
        "kept:default",
        "kept:latest",
        "kept:v1",
        "any/kept",
        "any/kept:default",
        "KEPT",
        full,
        own,
        bare,
        team,
    ] {
        let error = from(invalid).await.expect_err(invalid);
        assert_eq!(error.kind, NotFound, "{invalid}: {error}");
    }
    assert!(full.ends_with("/sandyard-kept-ours-kept:default"), "{full}");
    // Nor does its name at E2B, which users do not see.
    let marked = "sandyard-kept-ours-kept";
    assert_eq!(from(marked).await.expect_err(marked).kind, NotFound);
    // Nor can another snapshot take its name or its id.
    for taken in ["kept", bare, "base"] {
        let error = provider.snapshot(&id, taken).await.expect_err(taken);
        assert_eq!(error.kind, Conflict, "{taken}");
    }
    let error = provider.remove_template(bare).await.expect_err("an id");
    assert_eq!(error.kind, NotFound);
    // Templates still have teams and tags.
    for fine in ["kept", "base:latest", "any/base"] {
        let made = from(fine).await.expect(fine);
        provider.delete(&made.id).await.expect("delete");
    }
    // Restricted users can use the default and saved snapshots, and nothing else.
    for (template, is_there) in [("base", true), ("kept", true), ("any/base", false)] {
        let requested = InstanceSpec {
            template: template.to_owned(),
            is_restricted: true,
            ..spec(&provider, "three")
        };
        match provider.create(&requested).await {
            Ok(made) if is_there => provider.delete(&made.id).await.expect("delete"),
            Err(error) if !is_there => assert_eq!(error.kind, NotFound),
            other => panic!("{template}: {other:?}"),
        }
    }
    provider.remove_template("kept").await.expect("remove");
    provider.delete(&id).await.expect("delete");
    counterpart.finish().await;
}
