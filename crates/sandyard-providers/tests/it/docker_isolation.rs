//! Containers of a real Docker daemon: what users cannot reach through names, labels and links.

use std::time::{Duration, Instant};

use sandyard_provider::ProviderErrorKind::{Conflict, NotFound};
use sandyard_provider::prelude::*;
use sandyard_provider::{Mount, VolumeSpec};
use sandyard_providers::docker::{Docker, DockerConfig};

use crate::docker::{make, sh};
use crate::env::spec;
use crate::fake_dockerd::{Dockerd, IMAGE};

const PATIENCE: Duration = Duration::from_secs(180);

#[tokio::test]
async fn a_snapshot_is_reached_by_its_own_name_alone() {
    let dockerd = Dockerd::start(true).await;
    let provider = dockerd.provider("ours").await;
    let other = dockerd.provider("another").await;
    let made = make(&provider, "one").await.id;
    provider.snapshot(&made, "kept").await.expect("snapshot");
    let theirs = make(&other, "two").await.id;
    other.snapshot(&theirs, "theirs").await.expect("snapshot");
    let fork = provider.fork(&made, &spec(&provider, "three")).await;
    let fork = fork.expect("fork").id;
    let nameless = dockerd.inspect(&fork)["Image"].clone();
    let nameless = nameless.as_str().expect("text").to_owned();
    let id = dockerd.docker(&["inspect", "--format={{.Id}}", "sandyard/kept:latest"]);
    let hex = id.trim_start_matches("sha256:").to_owned();
    dockerd.docker(&["tag", "sandyard/kept:latest", "innocent:latest"]);
    let mut names: Vec<String> = [
        "sandyard/kept",
        "sandyard/kept:latest",
        "docker.io/sandyard/kept",
        "docker.io/sandyard/kept:latest",
        "index.docker.io/sandyard/kept",
        "sandyard/theirs",
        "theirs",
        "innocent",
        "sandyard-empty",
    ]
    .map(str::to_owned)
    .into();
    names.extend([
        id.clone(),
        hex.clone(),
        hex[..1].to_owned(),
        hex[..6].to_owned(),
        id[..13].to_owned(),
    ]);
    names.extend([
        nameless.clone(),
        nameless[7..19].to_owned(),
        format!("sandyard/kept@{id}"),
    ]);
    for name in names {
        let mut wish = spec(&provider, "four");
        wish.template = name.clone();
        let made = provider.create(&wish).await;
        assert_eq!(made.expect_err(&name).kind, NotFound, "{name}");
        provider.remove_template(&name).await.expect_err(&name);
    }
    // Nothing is offered that cannot be had, and who is restricted has no more than that.
    for template in provider.templates().await.expect("templates") {
        let mut wish = spec(&provider, "five");
        wish.template = template.name.clone();
        wish.is_restricted = true;
        let made = provider.create(&wish).await.expect(&template.name);
        assert!(template.is_ours, "{template:?}");
        provider.delete(&made.id).await.expect("delete");
    }
    dockerd.docker(&["tag", IMAGE, "admins:1"]);
    let mut wish = spec(&provider, "six");
    wish.template = "admins:1".to_owned();
    wish.is_restricted = true;
    let refused = provider.create(&wish).await.expect_err("not for all");
    assert_eq!(refused.kind, NotFound);
    wish.is_restricted = false;
    provider.create(&wish).await.expect("for an admin");
}

#[tokio::test]
async fn what_an_image_says_of_itself_is_not_believed() {
    let dockerd = Dockerd::start(true).await;
    let provider = dockerd.provider("ours").await.with_grace(Duration::ZERO);
    dockerd.docker(&["volume", "create", "precious"]);
    let change = |text: &str| format!("--change=LABEL sandyard.{text}");
    let source = dockerd.docker(&["create", "--network=none", IMAGE, "x"]);
    dockerd.docker(&[
        "commit",
        &change("workspace=precious"),
        &change("keeper=x"),
        &change("helper=x"),
        &change("base=x"),
        &change("agent=x/../../volumes/precious?"),
        &source,
        "odd:1",
    ]);
    let mut wish = spec(&provider, "one");
    wish.template = "odd:1".to_owned();
    let made = provider.create(&wish).await.expect("create").id;
    assert_eq!(
        sh(&provider, &made, "touch /workspace/x && echo yes").await,
        "yes"
    );
    let listed = provider.list().await.expect("list");
    assert!(listed.iter().any(|one| one.id == made), "it is not hidden");
    provider.delete(&made).await.expect("delete");
    assert!(dockerd.left().contains(&"volume precious".to_owned()));
}

#[tokio::test]
async fn a_default_image_is_nobodys_snapshot() {
    let dockerd = Dockerd::start(true).await;
    let provider = dockerd.provider("ours").await;
    let made = make(&provider, "one").await.id;
    let name = IMAGE.trim_end_matches(":latest");
    let refused = provider
        .snapshot(&made, name)
        .await
        .expect_err("the default's");
    assert_eq!(refused.kind, Conflict);
    // Also one that was there before the settings changed.
    provider.snapshot(&made, "later").await.expect("snapshot");
    let config = DockerConfig {
        image: "later".to_owned(),
        ..dockerd.config("ours")
    };
    let changed = Docker::connect(config).await.expect("connect");
    let made = changed.create(&spec(&changed, "two")).await;
    assert_eq!(made.expect_err("it is a snapshot").kind, NotFound);
}

#[tokio::test]
async fn a_link_leads_no_volume_to_the_agents_place() {
    let dockerd = Dockerd::start(true).await;
    let config = DockerConfig {
        user: Some("root".to_owned()),
        ..dockerd.config("ours")
    };
    let provider = Docker::connect(config).await.expect("connect");
    let volume = VolumeSpec {
        id: "v1".to_owned(),
        size_bytes: 32 << 20,
    };
    provider.create_volume(&volume).await.expect("volume");
    let mut wish = spec(&provider, "one");
    wish.mounts = vec![Mount {
        volume: "v1".to_owned(),
        path: "/own/.sandyard".to_owned(),
    }];
    let made = provider.create(&wish).await.expect("create").id;
    let line = "mv /own /elsewhere && ln -s / /own && readlink /own";
    assert_eq!(sh(&provider, &made, line).await, "/");
    provider.stop(&made).await.expect("stop");
    let refused = provider.start(&made).await.expect_err("a link");
    assert_eq!(refused.kind, Conflict, "{refused}");
    assert!(refused.message.contains("/own"), "{refused}");
    provider.delete(&made).await.expect("delete");
}

#[tokio::test]
async fn a_volume_that_was_not_opened_to_all_is_when_it_is_made_again() {
    let dockerd = Dockerd::start(true).await;
    let provider = dockerd.provider("ours").await;
    let label = |text: &str| format!("--label=sandyard.{text}");
    let (ours, id) = (label("installation=ours"), label("volume=v1"));
    dockerd.docker(&["volume", "create", &ours, &id, "sandyard-vol-v1"]);
    let volume = VolumeSpec {
        id: "v1".to_owned(),
        size_bytes: 32 << 20,
    };
    provider.create_volume(&volume).await.expect("volume");
    let mut wish = spec(&provider, "one");
    wish.mounts = vec![Mount {
        volume: "v1".to_owned(),
        path: "/data".to_owned(),
    }];
    let made = provider.create(&wish).await.expect("create").id;
    assert_eq!(
        sh(&provider, &made, "echo 1 > /data/x; cat /data/x").await,
        "1"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agents_program_arrives_also_when_nobody_waits_for_it() {
    let dockerd = Dockerd::start(true).await;
    let provider = dockerd.provider("ours").await;
    let wish = spec(&provider, "one");
    let asking = tokio::spawn(async move { provider.create(&wish).await });
    let give_up = Instant::now() + PATIENCE;
    let has = |name: &str| dockerd.everything().iter().any(|one| one.starts_with(name));
    while !has("container sandyard-fill-") && !has("container sandyard-agent-") {
        assert!(Instant::now() < give_up, "nobody begins");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    asking.abort();
    while !has("container sandyard-agent-") {
        assert!(Instant::now() < give_up, "{:?}", dockerd.everything());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(!has("container sandyard-fill-"));
}
