//! Containers of a real Docker daemon: what is removed automatically, and what is not.

use std::time::{Duration, Instant};

use sandyard_provider::prelude::*;

use crate::docker::{make, sh};
use crate::fake_dockerd::{Dockerd, IMAGE};

const TIMEOUT: Duration = Duration::from_secs(180);

#[tokio::test]
async fn leftovers_of_crashed_servers_are_swept_and_nothing_else() {
    let dockerd = Dockerd::start(true).await;
    let provider = dockerd.provider("ours").await.with_grace(Duration::ZERO);
    let retained = make(&provider, "kept").await;
    provider.stop(&retained.id).await.expect("stop");
    let label = |text: &str| format!("--label=sandyard.{text}");
    let own = label("installation=ours");
    let missing = label("workspace=sandyard-gone-1");
    dockerd.docker(&["volume", "create", &own, &missing, "sandyard-ws-gone-1"]);
    let word = label("gone=sandyard-ws-gone-1");
    dockerd.docker(&["volume", "create", &own, &word, "sandyard-deleted-gone-1"]);
    let foreign = label("installation=another");
    dockerd.docker(&["volume", "create", &foreign, &missing, "sandyard-ws-theirs"]);
    dockerd.docker(&["volume", "create", "somebodys"]);
    for (owner, name) in [(&own, "sandyard-agent-00"), (&foreign, "sandyard-agent-01")] {
        let agent = label("agent=00");
        let mount = format!("--mount=type=volume,src={name},dst=/.sandyard");
        let (create, name) = (["create", "--network=none"], format!("--name={name}"));
        dockerd.docker(&[&create[..], &[&name, &agent, owner, &mount, IMAGE, "x"]].concat());
    }
    // Whatever its labels say: its container is not one of this provider's.
    dockerd.docker(&["volume", "create", "precious"]);
    let invalid = label("agent=x/../../volumes/precious?");
    let mount = "--mount=type=volume,src=precious,dst=/.sandyard";
    dockerd.docker(&[
        "create",
        "--network=none",
        &invalid,
        &own,
        mount,
        IMAGE,
        "x",
    ]);
    let is_left = |name: &str| dockerd.everything().iter().any(|one| one.ends_with(name));
    let give_up = Instant::now() + TIMEOUT;
    while is_left(" sandyard-ws-gone-1") || is_left(" sandyard-agent-00") {
        assert!(Instant::now() < give_up, "{:?}", dockerd.everything());
        provider.list().await.expect("list");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for retained in [
        "sandyard-ws-theirs",
        "somebodys",
        "sandyard-agent-01",
        "precious",
    ] {
        assert!(is_left(&format!(" {retained}")), "{retained} is gone");
    }
    provider
        .start(&retained.id)
        .await
        .expect("its volume is still there");
    provider.delete(&retained.id).await.expect("delete");
}

#[tokio::test]
async fn the_workspace_of_a_container_removed_elsewhere_is_retained_for_a_while() {
    let dockerd = Dockerd::start(true).await;
    let provider = dockerd.provider("ours").await.with_grace(Duration::ZERO);
    let made = make(&provider, "one").await.id;
    sh(&provider, &made, "echo precious > /workspace/file").await;
    let volume = dockerd.docker(&["volume", "ls", "-q", "--filter=name=sandyard-ws-"]);
    // As `docker system prune` does.
    dockerd.docker(&["rm", "-f", "-v", &made]);
    let lost = volume.replace("sandyard-ws-", "sandyard-lost-");
    let give_up = Instant::now() + TIMEOUT;
    while !dockerd.leftovers().contains(&format!("volume {lost}")) {
        assert!(Instant::now() < give_up, "{:?}", dockerd.leftovers());
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
        .with_lost_retention(Duration::ZERO);
    while !dockerd.leftovers().is_empty() {
        assert!(Instant::now() < give_up, "{:?}", dockerd.leftovers());
        impatient.list().await.expect("list");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // A container whose deletion was interrupted.
    let made = make(&provider, "two").await.id;
    let volume = dockerd.docker(&["volume", "ls", "-q", "--filter=name=sandyard-ws-"]);
    // It is in use again, so that the deletion cannot finish.
    let mount = format!("--mount=type=volume,src={volume},dst=/x");
    let other = dockerd.docker(&["create", "--network=none", &mount, IMAGE, "x"]);
    provider.delete(&made).await.expect_err("in use");
    dockerd.docker(&["rm", &other]);
    provider.delete(&made).await.expect("its container is gone");
    while !dockerd.leftovers().is_empty() {
        assert!(Instant::now() < give_up, "{:?}", dockerd.leftovers());
        provider.list().await.expect("list");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
