//! The hidden sandboxes through which a volume's files are reached: how they come, and that they go.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sandyard_agent_client::wire::process::ProcessConfig;
use sandyard_agent_client::{AgentClient, RunOptions};
use sandyard_engine::SandboxInfo;
use sandyard_provider::ProviderErrorKind::{Conflict, NotFound};
use sandyard_provider::{Mount, Provider, VOLUME_PATH, VolumeSpec};
use sandyard_providers::{Embedded, EmbeddedConfig, NodeProvider, Times};

use crate::server::Server;
use crate::yard::{Yard, spec};

const PATIENCE: Duration = Duration::from_secs(20);

async fn provider(yard: &Yard, keep: Duration) -> Embedded {
    let config = EmbeddedConfig {
        engine: yard.config.clone(),
        installation: Some("ours".to_owned()),
        times: Times {
            keep,
            ..Times::default()
        },
        ..EmbeddedConfig::new("")
    };
    let provider = Embedded::connect(config).await.expect("connect");
    let volume = VolumeSpec {
        id: "v1".to_owned(),
        size_bytes: 32 << 20,
    };
    provider.create_volume(&volume).await.expect("a volume");
    provider
}

async fn sh(agent: &AgentClient, line: &str) -> String {
    let process = ProcessConfig {
        cmd: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), line.to_owned()],
        ..ProcessConfig::default()
    };
    let output = agent.run(process, &RunOptions::default()).await;
    let output = output.expect("run a shell line");
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

/// All that the engine has, once there are that many.
async fn engine_has(yard: &Yard, count: usize) -> Vec<SandboxInfo> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let all = yard.engine.list().await.expect("list");
        if all.len() == count {
            return all;
        }
        assert!(Instant::now() < give_up, "{count} expected, not {all:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn all_who_open_a_volume_share_one_keeper_that_nobody_sees() {
    let yard = Yard::new().await;
    let provider = provider(&yard, Duration::from_secs(60)).await;
    let opened = tokio::join!(
        provider.open_volume("v1"),
        provider.open_volume("v1"),
        provider.open_volume("v1")
    );
    let agent = opened.0.expect("open");
    opened.1.expect("open");
    opened.2.expect("open");
    sh(&agent, &format!("echo kept > {VOLUME_PATH}/file")).await;
    let keepers = engine_has(&yard, 1).await;
    assert!(keepers[0].ephemeral);
    assert_eq!(provider.list().await.expect("list"), []);
    let keeper = keepers[0].id.as_str();
    assert_eq!(provider.inspect(keeper).await.expect("inspect"), None);
    // It is the provider's own, and with it it goes.
    provider.close().await;
    engine_has(&yard, 0).await;
    provider.delete_volume("v1").await.expect("delete");
    yard.finish().await;
}

#[tokio::test]
async fn a_keeper_goes_when_it_is_not_used_and_comes_again_when_it_is() {
    let yard = Yard::new().await;
    let provider = provider(&yard, Duration::from_millis(500)).await;
    let agent = provider.open_volume("v1").await.expect("open");
    // As long as somebody is at it, it stays.
    let line = format!("sleep 2; echo kept > {VOLUME_PATH}/file; hostname");
    assert_eq!(sh(&agent, &line).await, "volume");
    let first = engine_has(&yard, 1).await.remove(0).id;
    engine_has(&yard, 0).await;
    // The client that was handed out is good for the next one, too.
    let line = format!("cat {VOLUME_PATH}/file");
    assert_eq!(sh(&agent, &line).await, "kept");
    let second = provider.open_volume("v1").await.expect("open");
    assert_eq!(sh(&second, &line).await, "kept");
    let now = yard.engine.list().await.expect("list");
    assert!(now.iter().all(|one| one.id != first), "{now:?}");
    provider.delete_volume("v1").await.expect("delete");
    yard.finish().await;
}

#[tokio::test]
async fn a_keeper_that_was_taken_away_is_made_anew() {
    let yard = Yard::new().await;
    let provider = provider(&yard, Duration::from_secs(60)).await;
    let agent = provider.open_volume("v1").await.expect("open");
    let first = engine_has(&yard, 1).await.remove(0).id;
    yard.engine.delete(&first).await.expect("delete");
    yard.kill_launcher().await;
    assert_eq!(sh(&agent, "hostname").await, "volume");
    assert_ne!(engine_has(&yard, 1).await.remove(0).id, first);
    provider.delete_volume("v1").await.expect("delete");
    yard.finish().await;
}

#[tokio::test]
async fn keepers_go_with_their_provider_and_are_in_no_other_ones_way() {
    let yard = Yard::new().await;
    let one = provider(&yard, Duration::from_secs(60)).await;
    let two = provider(&yard, Duration::from_secs(60)).await;
    let agent = one.open_volume("v1").await.expect("open");
    sh(&agent, &format!("echo 1 > {VOLUME_PATH}/file")).await;
    let other = two.open_volume("v1").await.expect("open");
    assert_eq!(sh(&other, &format!("cat {VOLUME_PATH}/file")).await, "1");
    engine_has(&yard, 2).await;
    drop((one, agent));
    engine_has(&yard, 1).await;
    let three = provider(&yard, Duration::from_secs(60)).await;
    three.delete_volume("v1").await.expect("another's keeper");
    assert_eq!(two.open_volume("v1").await.unwrap_err().kind, NotFound);
    yard.finish().await;
}

#[tokio::test]
async fn a_node_leads_to_a_volume_and_says_what_is_wrong_with_it() {
    let yard = Yard::new().await;
    let embedded = Arc::new(provider(&yard, Duration::from_secs(60)).await);
    let server = Server::start(embedded.clone(), None).await;
    let node = NodeProvider::connect(server.config("right")).await;
    let node = node.expect("connect");
    let agent = node.open_volume("v1").await.expect("open");
    let line = format!("id -u; echo far > {VOLUME_PATH}/file");
    assert_eq!(sh(&agent, &line).await, "0");
    let mut spec = spec(&node, "one");
    spec.mounts.push(Mount {
        volume: "v1".to_owned(),
        path: "/data".to_owned(),
    });
    let made = node.create(&spec).await.expect("create").id;
    let refused = node.delete_volume("v1").await.expect_err("in use");
    assert_eq!(refused.kind, Conflict);
    node.delete(&made).await.expect("delete");
    assert_eq!(node.open_volume("none").await.unwrap_err().kind, NotFound);
    let near = embedded.open_volume("v1").await.expect("open");
    assert_eq!(sh(&near, &format!("cat {VOLUME_PATH}/file")).await, "far");
    node.delete_volume("v1").await.expect("delete");
    yard.finish().await;
}
