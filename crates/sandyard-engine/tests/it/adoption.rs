//! Sandboxes outlive the launcher: the next one finds them all, and nothing inside noticed.

use futures_util::future::join_all;
use sandyard_core::SandboxState::Running;
use sandyard_engine::{Engine, EngineConfig};

use crate::test_env::{LAUNCHER, TestEnv, small};

const COUNT: usize = 100;
const COUNTER: &str = r#"(echo started >> ~/starts; i=0
    while :; do i=$((i+1)); echo $i > ~/count.new; mv ~/count.new ~/count; sleep 1; done) > /dev/null 2>&1 &"#;
const GROWS: &str = r#"until [ -s ~/count ]; do sleep 0.3; done; a=$(cat ~/count); for i in $(seq 400); do
    b=$(cat ~/count); [ $b -gt $a ] && echo $(wc -l < ~/starts) grown && exit; sleep 0.3; done; echo stuck at $a"#;

#[tokio::test]
async fn a_hundred_counters_never_stop_while_the_launcher_is_killed_and_replaced() {
    let env = TestEnv::new().await;
    let mut ids = Vec::new();
    for _ in 0..COUNT {
        ids.push(env.engine.create(&small()).await.expect("create").id);
    }
    join_all(ids.iter().map(|id| env.sh(id, COUNTER))).await;
    env.kill_launcher().await;
    // A new client that knows nothing but the data directory, and so a new launcher.
    let config = EngineConfig {
        launcher: Some(vec![LAUNCHER.into()]),
        ..EngineConfig::new(&env.data)
    };
    let engine = Engine::connect(config).await.expect("connect");
    let listed = engine.list().await.expect("list");
    assert_eq!(listed.len(), COUNT);
    assert!(
        listed.iter().all(|info| info.state == Running),
        "{listed:?}"
    );
    // The same process counts on: nothing inside was started again, and the number grows.
    let grown = join_all(ids.iter().map(|id| env.out(id, GROWS))).await;
    assert_eq!(grown, vec!["1 grown"; COUNT]);
    drop(engine);
    env.finish().await;
}
