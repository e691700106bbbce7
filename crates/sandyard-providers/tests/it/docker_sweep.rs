//! Containers of a real Docker daemon: what is taken away by itself, and what is not.

use std::time::{Duration, Instant};

use sandyard_provider::prelude::*;

use crate::docker::{make, sh};
use crate::fake_dockerd::{Dockerd, IMAGE};

const PATIENCE: Duration = Duration::from_secs(180);

#[tokio::test]
async fn what_died_servers_have_left_is_swept_and_nothing_else() {
    let dockerd = Dockerd::start(true).await;
    let provider = dockerd.provider("ours").await.with_grace(Duration::ZERO);
    let kept = make(&provider, "kept").await;
    provider.stop(&kept.id).await.expect("stop");
    let label = |text: &str| format!("--label=sandyard.{text}");
    let ours = label("installation=ours");
    let gone = label("workspace=sandyard-gone-1");
    dockerd.docker(&["volume", "create", &ours, &gone, "sandyard-ws-gone-1"]);
    let word = label("gone=sandyard-ws-gone-1");
    dockerd.docker(&["volume", "create", &ours, &word, "sandyard-deleted-gone-1"]);
    let theirs = label("installation=another");
    dockerd.docker(&["volume", "create", &theirs, &gone, "sandyard-ws-theirs"]);
    dockerd.docker(&["volume", "create", "somebodys"]);
    for (owner, name) in [(&ours, "sandyard-agent-00"), (&theirs, "sandyard-agent-01")] {
        let agent = label("agent=00");
        let mount = format!("--mount=type=volume,src={name},dst=/.sandyard");
        let (create, name) = (["create", "--network=none"], format!("--name={name}"));
        dockerd.docker(&[&create[..], &[&name, &agent, owner, &mount, IMAGE, "x"]].concat());
    }
    // Whatever it says of itself: its container is none of ours.
    dockerd.docker(&["volume", "create", "precious"]);
    let odd = label("agent=x/../../volumes/precious?");
    let mount = "--mount=type=volume,src=precious,dst=/.sandyard";
    dockerd.docker(&["create", "--network=none", &odd, &ours, mount, IMAGE, "x"]);
    let is_left = |name: &str| dockerd.everything().iter().any(|one| one.ends_with(name));
    let give_up = Instant::now() + PATIENCE;
    while is_left(" sandyard-ws-gone-1") || is_left(" sandyard-agent-00") {
        assert!(Instant::now() < give_up, "{:?}", dockerd.everything());
        provider.list().await.expect("list");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for kept in [
        "sandyard-ws-theirs",
        "somebodys",
        "sandyard-agent-01",
        "precious",
    ] {
        assert!(is_left(&format!(" {kept}")), "{kept} is gone");
    }
    provider
        .start(&kept.id)
        .await
        .expect("its volume is still there");
    provider.delete(&kept.id).await.expect("delete");
}

#[tokio::test]
async fn the_workspace_of_a_container_that_somebody_else_removed_is_kept_for_a_while() {
    let dockerd = Dockerd::start(true).await;
    let provider = dockerd.provider("ours").await.with_grace(Duration::ZERO);
    let made = make(&provider, "one").await.id;
    sh(&provider, &made, "echo precious > /workspace/file").await;
    let volume = dockerd.docker(&["volume", "ls", "-q", "--filter=name=sandyard-ws-"]);
    // As `docker system prune` does.
    dockerd.docker(&["rm", "-f", "-v", &made]);
    let lost = volume.replace("sandyard-ws-", "sandyard-lost-");
    let give_up = Instant::now() + PATIENCE;
    while !dockerd.left().contains(&format!("volume {lost}")) {
        assert!(Instant::now() < give_up, "{:?}", dockerd.left());
        provider.list().await.expect("list");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for _ in 0..3 {
        provider.list().await.expect("list");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let mount = format!("--mount=type=volume,src={volume},dst=/x");
    let run = [
        "run",
        "--rm",
        "--network=none",
        &mount,
        IMAGE,
        "cat",
        "/x/file",
    ];
    assert_eq!(dockerd.docker(&run), "precious");
    provider.delete(&made).await.expect("nothing is there");
    let impatient = dockerd.provider("ours").await;
    let impatient = impatient
        .with_grace(Duration::ZERO)
        .with_lost_kept(Duration::ZERO);
    while !dockerd.left().is_empty() {
        assert!(Instant::now() < give_up, "{:?}", dockerd.left());
        impatient.list().await.expect("list");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // One that we deleted, and did not come to the end of it.
    let made = make(&provider, "two").await.id;
    let volume = dockerd.docker(&["volume", "ls", "-q", "--filter=name=sandyard-ws-"]);
    // It is in use once more, so that the delete cannot come to its end.
    let mount = format!("--mount=type=volume,src={volume},dst=/x");
    let other = dockerd.docker(&["create", "--network=none", &mount, IMAGE, "x"]);
    provider.delete(&made).await.expect_err("in use");
    dockerd.docker(&["rm", &other]);
    provider.delete(&made).await.expect("its container is gone");
    while !dockerd.left().is_empty() {
        assert!(Instant::now() < give_up, "{:?}", dockerd.left());
        provider.list().await.expect("list");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
