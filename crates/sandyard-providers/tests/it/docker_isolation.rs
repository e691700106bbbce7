//! Containers of a real Docker daemon: what users cannot reach through names, labels and links.

use std::time::{Duration, Instant};

use sandyard_provider::ProviderErrorKind::{Conflict, NotFound};
use sandyard_provider::prelude::*;
use sandyard_provider::{Mount, VolumeSpec};
use sandyard_providers::docker::{Docker, DockerConfig};

use crate::docker::{make, sh};
use crate::env::spec;
use crate::fake_dockerd::{Dockerd, IMAGE};

const TIMEOUT: Duration = Duration::from_secs(180);

#[tokio::test]
async fn a_snapshot_is_addressed_by_its_name_only() {
    let dockerd = Dockerd::start(true).await;
    let provider = dockerd.provider("ours").await;
    let other = dockerd.provider("another").await;
    let made = make(&provider, "one").await.id;
    provider.snapshot(&made, "kept").await.expect("snapshot");
    let foreign = make(&other, "two").await.id;
    other.snapshot(&foreign, "theirs").await.expect("snapshot");
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
        let mut new_spec = spec(&provider, "four");
        new_spec.template = name.clone();
        let made = provider.create(&new_spec).await;
        assert_eq!(made.expect_err(&name).kind, NotFound, "{name}");
        provider.remove_template(&name).await.expect_err(&name);
    }
    // Every listed template can be used, and restricted users can use no others.
    for template in provider.templates().await.expect("templates") {
        let mut new_spec = spec(&provider, "five");
        new_spec.template = template.name.clone();
        new_spec.is_restricted = true;
        let made = provider.create(&new_spec).await.expect(&template.name);
        assert!(template.is_ours, "{template:?}");
        provider.delete(&made.id).await.expect("delete");
    }
    dockerd.docker(&["tag", IMAGE, "admins:1"]);
    let mut new_spec = spec(&provider, "six");
    new_spec.template = "admins:1".to_owned();
    new_spec.is_restricted = true;
    let refused = provider.create(&new_spec).await.expect_err("not for all");
    assert_eq!(refused.kind, NotFound);
    new_spec.is_restricted = false;
    provider.create(&new_spec).await.expect("for an admin");
}

#[tokio::test]
async fn labels_of_an_image_are_not_trusted() {
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
    let mut new_spec = spec(&provider, "one");
    new_spec.template = "odd:1".to_owned();
    let made = provider.create(&new_spec).await.expect("create").id;
    assert_eq!(
        sh(&provider, &made, "touch /workspace/x && echo yes").await,
        "yes"
    );
    let instances = provider.list().await.expect("list");
    assert!(
        instances.iter().any(|one| one.id == made),
        "it is not hidden"
    );
    provider.delete(&made).await.expect("delete");
    assert!(dockerd.leftovers().contains(&"volume precious".to_owned()));
}

#[tokio::test]
async fn the_default_image_is_never_a_snapshot() {
    let dockerd = Dockerd::start(true).await;
    let provider = dockerd.provider("ours").await;
    let made = make(&provider, "one").await.id;
    let name = IMAGE.trim_end_matches(":latest");
    let refused = provider
        .snapshot(&made, name)
        .await
        .expect_err("the default's");
    assert_eq!(refused.kind, Conflict);
    // Also a snapshot that existed before the settings changed.
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
async fn a_symbolic_link_cannot_redirect_a_volume_to_the_agent() {
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
    let mut new_spec = spec(&provider, "one");
    new_spec.mounts = vec![Mount {
        volume: "v1".to_owned(),
        path: "/own/.sandyard".to_owned(),
    }];
    let made = provider.create(&new_spec).await.expect("create").id;
    let line = "mv /own /elsewhere && ln -s / /own && readlink /own";
    assert_eq!(sh(&provider, &made, line).await, "/");
    provider.stop(&made).await.expect("stop");
    let refused = provider.start(&made).await.expect_err("a link");
    assert_eq!(refused.kind, Conflict, "{refused}");
    assert!(refused.message.contains("/own"), "{refused}");
    provider.delete(&made).await.expect("delete");
}

#[tokio::test]
async fn a_second_create_makes_a_volume_writable() {
    let dockerd = Dockerd::start(true).await;
    let provider = dockerd.provider("ours").await;
    let label = |text: &str| format!("--label=sandyard.{text}");
    let (own, id) = (label("installation=ours"), label("volume=v1"));
    dockerd.docker(&["volume", "create", &own, &id, "sandyard-vol-v1"]);
    let volume = VolumeSpec {
        id: "v1".to_owned(),
        size_bytes: 32 << 20,
    };
    provider.create_volume(&volume).await.expect("volume");
    let mut new_spec = spec(&provider, "one");
    new_spec.mounts = vec![Mount {
        volume: "v1".to_owned(),
        path: "/data".to_owned(),
    }];
    let made = provider.create(&new_spec).await.expect("create").id;
    assert_eq!(
        sh(&provider, &made, "echo 1 > /data/x; cat /data/x").await,
        "1"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_upload_of_the_program_continues_without_its_caller() {
    let dockerd = Dockerd::start(true).await;
    let provider = dockerd.provider("ours").await;
    let new_spec = spec(&provider, "one");
    let asking = tokio::spawn(async move { provider.create(&new_spec).await });
    let give_up = Instant::now() + TIMEOUT;
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
