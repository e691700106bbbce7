//! The hidden sandboxes through which a volume's files are reached: how they come, and that they go.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sandyard_agent_client::wire::process::{ProcessConfig, StartRequest};
use sandyard_agent_client::{AgentClient, StartOptions};
use sandyard_engine::SandboxInfo;
use sandyard_provider::ProviderErrorKind::{Conflict, NoCapacity, NotFound};
use sandyard_provider::prelude::*;
use sandyard_provider::{Mount, VOLUME_PATH, VolumeSpec};
use sandyard_providers::{CallTimeouts, Embedded, EmbeddedConfig, NodeProvider};

use crate::agent_client::printed;
use crate::env::{TestEnv, spec};
use crate::node_server::Server;

const TIMEOUT: Duration = Duration::from_secs(120);

async fn provider(env: &TestEnv, keep: Duration) -> Embedded {
    let config = EmbeddedConfig {
        engine: env.config.clone(),
        installation: Some("ours".to_owned()),
        timeouts: CallTimeouts {
            keep,
            ..CallTimeouts::default()
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

/// All that the engine has, once there are that many.
async fn engine_has(env: &TestEnv, count: usize) -> Vec<SandboxInfo> {
    let give_up = Instant::now() + TIMEOUT;
    loop {
        let all = env.engine.list().await.expect("list");
        if all.len() == count {
            return all;
        }
        assert!(Instant::now() < give_up, "{count} expected, not {all:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn callers_share_one_hidden_helper_of_a_volume() {
    let env = TestEnv::new().await;
    let provider = provider(&env, Duration::from_secs(60)).await;
    let opened_count = tokio::join!(
        provider.open_volume("v1"),
        provider.open_volume("v1"),
        provider.open_volume("v1")
    );
    let agent = opened_count.0.expect("open");
    opened_count.1.expect("open");
    opened_count.2.expect("open");
    printed(&agent, &format!("echo kept > {VOLUME_PATH}/file")).await;
    let helpers = engine_has(&env, 1).await;
    assert!(helpers[0].ephemeral);
    assert_eq!(provider.list().await.expect("list"), []);
    let helper = helpers[0].id.as_str();
    assert_eq!(provider.inspect(helper).await.expect("inspect"), None);
    // It is the provider's own, and with it it goes.
    provider.close().await;
    engine_has(&env, 0).await;
    provider.delete_volume("v1").await.expect("delete");
    env.finish().await;
}

#[tokio::test]
async fn an_unused_helper_is_deleted_and_created_again_on_demand() {
    let env = TestEnv::new().await;
    // Longer than a busy machine takes from a connection to what is asked on it.
    let provider = provider(&env, Duration::from_secs(5)).await;
    let agent = provider.open_volume("v1").await.expect("open");
    // As long as somebody is at it, it stays.
    let line = format!("sleep 8; echo kept > {VOLUME_PATH}/file; hostname");
    let (output, mut helpers) = tokio::join!(printed(&agent, &line), engine_has(&env, 1));
    assert_eq!(output, "volume");
    let first = helpers.remove(0).id;
    engine_has(&env, 0).await;
    // The client that was handed out is good for the next one, too.
    let line = format!("cat {VOLUME_PATH}/file");
    assert_eq!(printed(&agent, &line).await, "kept");
    let second = provider.open_volume("v1").await.expect("open");
    assert_eq!(printed(&second, &line).await, "kept");
    let now = env.engine.list().await.expect("list");
    assert!(now.iter().all(|one| one.id != first), "{now:?}");
    provider.delete_volume("v1").await.expect("delete");
    env.finish().await;
}

#[tokio::test]
async fn a_removed_helper_is_replaced() {
    let env = TestEnv::new().await;
    let provider = provider(&env, Duration::from_secs(60)).await;
    let agent = provider.open_volume("v1").await.expect("open");
    let first = engine_has(&env, 1).await.remove(0).id;
    env.engine.delete(&first).await.expect("delete");
    env.kill_launcher().await;
    assert_eq!(printed(&agent, "hostname").await, "volume");
    assert_ne!(engine_has(&env, 1).await.remove(0).id, first);
    provider.delete_volume("v1").await.expect("delete");
    env.finish().await;
}

#[tokio::test]
async fn helpers_end_with_their_provider_and_do_not_affect_others() {
    let env = TestEnv::new().await;
    let one = provider(&env, Duration::from_secs(60)).await;
    let two = provider(&env, Duration::from_secs(60)).await;
    let agent = one.open_volume("v1").await.expect("open");
    printed(&agent, &format!("echo 1 > {VOLUME_PATH}/file")).await;
    let other = two.open_volume("v1").await.expect("open");
    assert_eq!(
        printed(&other, &format!("cat {VOLUME_PATH}/file")).await,
        "1"
    );
    engine_has(&env, 2).await;
    drop((one, agent));
    engine_has(&env, 1).await;
    let three = provider(&env, Duration::from_secs(60)).await;
    three.delete_volume("v1").await.expect("another's keeper");
    assert_eq!(two.open_volume("v1").await.unwrap_err().kind, NotFound);
    env.finish().await;
}

/// Runs a command in a volume helper until the helper is deleted.
async fn occupy(agent: &AgentClient) {
    let request = StartRequest {
        process: ProcessConfig {
            cmd: "/bin/sleep".to_owned(),
            args: vec!["600".to_owned()],
            ..ProcessConfig::default()
        },
        ..StartRequest::default()
    };
    let started = agent.start(&request, &StartOptions::default()).await;
    started.expect("start");
}

#[tokio::test]
async fn helpers_are_small_and_bounded_and_the_idlest_is_replaced() {
    const MAX_HELPERS: usize = 32;
    let env = TestEnv::new().await;
    let provider = provider(&env, Duration::from_secs(600)).await;
    for count in 2..=MAX_HELPERS + 1 {
        let volume = VolumeSpec {
            id: format!("v{count}"),
            size_bytes: 32 << 20,
        };
        provider.create_volume(&volume).await.expect("a volume");
    }
    for count in 1..=MAX_HELPERS {
        let opened_count = provider.open_volume(&format!("v{count}")).await;
        let agent = opened_count.expect("open");
        if count != 2 {
            occupy(&agent).await;
        }
    }
    let of = |all: &[SandboxInfo], volume: &str| {
        let is_its = |info: &&SandboxInfo| info.labels.values().any(|label| label == volume);
        all.iter().find(is_its).map(|info| info.id.clone())
    };
    let before = engine_has(&env, MAX_HELPERS).await;
    for helper in &before {
        let limits = &helper.limits;
        assert_eq!((limits.cpu_millis, limits.pids), (250, 64));
        assert!(limits.memory_bytes <= 128 << 20 && limits.disk_bytes <= 16 << 20);
    }
    // A helper that was just opened is not deleted, so this may need several attempts.
    let give_up = Instant::now() + TIMEOUT;
    let agent = loop {
        match provider.open_volume("v33").await {
            Ok(agent) => break agent,
            Err(error) => assert_eq!(error.kind, NoCapacity, "{error}"),
        }
        assert!(Instant::now() < give_up, "no room is made");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    occupy(&agent).await;
    let now = engine_has(&env, MAX_HELPERS).await;
    assert_eq!(of(&now, "v2"), None, "the idle one went");
    assert_eq!(of(&now, "v1"), of(&before, "v1"), "the others stayed");
    assert_eq!(
        provider.open_volume("v2").await.unwrap_err().kind,
        NoCapacity
    );
    assert!(provider.open_volume("v1").await.is_ok());
    provider.delete_volume("v3").await.expect("delete");
    provider.open_volume("v2").await.expect("a place is free");
    for count in 1..=MAX_HELPERS + 1 {
        let deleted = provider.delete_volume(&format!("v{count}")).await;
        deleted.expect("delete");
    }
    env.finish().await;
}

#[tokio::test]
async fn a_node_leads_to_a_volume_and_says_what_is_wrong_with_it() {
    let env = TestEnv::new().await;
    let embedded = Arc::new(provider(&env, Duration::from_secs(60)).await);
    let server = Server::start(embedded.clone(), None).await;
    let node = NodeProvider::connect(server.config("right")).await;
    let node = node.expect("connect");
    let agent = node.open_volume("v1").await.expect("open");
    let line = format!("id -u; echo far > {VOLUME_PATH}/file");
    assert_eq!(printed(&agent, &line).await, "0");
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
    assert_eq!(
        printed(&near, &format!("cat {VOLUME_PATH}/file")).await,
        "far"
    );
    node.delete_volume("v1").await.expect("delete");
    env.finish().await;
}
