//! Sandboxes outlive the launcher: the next one finds them all, and nothing inside noticed.

use sandyard_core::SandboxState::Running;
use sandyard_engine::{Engine, EngineConfig};

use crate::yard::{LAUNCHER, Yard, small};

const COUNT: usize = 100;

#[tokio::test]
async fn a_hundred_counters_never_stop_while_the_launcher_is_killed_and_replaced() {
    let yard = Yard::new().await;
    let mut ids = Vec::new();
    for _ in 0..COUNT {
        let id = yard.engine.create(&small()).await.expect("create").id;
        yard.sh(&id, "(i=0; while :; do i=$((i+1)); echo $i > ~/count.new; mv ~/count.new ~/count; sleep 0.2; done) >/dev/null 2>&1 &").await;
        ids.push(id);
    }
    yard.kill_launcher().await;
    // A new client that knows nothing but the data directory, and so a new launcher.
    let config = EngineConfig { launcher: Some(vec![LAUNCHER.into()]), ..EngineConfig::new(&yard.data) };
    let engine = Engine::connect(config).await.expect("connect");
    let listed = engine.list().await.expect("list");
    assert_eq!(listed.len(), COUNT);
    assert!(listed.iter().all(|info| info.state == Running), "{listed:?}");
    for id in &ids {
        // The same process counts on: its pid is the one that was started, and the number grows.
        let grown = yard.out(id, "a=$(cat ~/count); for i in $(seq 100); do b=$(cat ~/count); [ $b -gt $a ] && echo grown && exit; sleep 0.1; done; echo stuck at $a").await;
        assert_eq!(grown, "grown", "{id}");
    }
    drop(engine);
    yard.finish().await;
}
