//! A launcher of another build or with another port for tools is ended, once, and nobody inside a sandbox notices.

use std::path::Path;
use std::time::Duration;

use sandyard_agent::TOOLS_PORT;
use sandyard_core::{SandboxId, SandboxState};
use sandyard_engine::{Engine, EngineConfig};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::test_env::{LAUNCHER, TestEnv, copy_launcher, ready, small};

const OTHER_PORT: u16 = 7070;

/// As a server connects: its own launcher or none.
async fn server(env: &TestEnv, launcher: &Path, port: u16) -> Engine {
    let config = EngineConfig {
        launcher: Some(vec![launcher.display().to_string()]),
        allow_faults: true,
        idle_exit: Duration::from_secs(2),
        tools_port: Some(port),
        replaces_other: true,
        ..EngineConfig::new(&env.data)
    };
    Engine::connect(config).await.expect("connect")
}

async fn launcher_of(engine: &Engine) -> i32 {
    engine.hello().await.expect("hello").launcher_pid
}

/// Says something to the tool server at a port, and hears it again.
async fn has_tools(engine: &Engine, id: &SandboxId, port: u16) -> bool {
    let Ok(port) = engine.agent(id).dial(port).await else {
        return false;
    };
    let mut stream = port.stream;
    let mut answer = String::new();
    stream.write_all(b"hello\n").await.is_ok()
        && BufReader::new(stream).read_line(&mut answer).await.is_ok()
        && answer == "hello\n"
}

#[tokio::test]
async fn a_launcher_that_would_make_other_sandboxes_is_replaced_and_sandboxes_go_on() {
    let env = TestEnv::new().await;
    env.engine
        .set_pool(vec![ready("host", 1)])
        .await
        .expect("pool");
    let old = env.create().await.id;
    let started = "sleep 1000 > /dev/null 2>&1 & echo $!";
    let process = env.out(&old, started).await;
    let first = launcher_of(&env.engine).await;

    let same = server(&env, Path::new(LAUNCHER), TOOLS_PORT).await;
    assert_eq!(launcher_of(&same).await, first, "it is as it should be");

    let other = server(&env, Path::new(LAUNCHER), OTHER_PORT).await;
    let second = launcher_of(&other).await;
    assert_ne!(second, first);
    assert_eq!(
        launcher_of(&same).await,
        second,
        "who is connected already ends nobody's"
    );
    let listed = other.inspect(&old).await.expect("inspect");
    assert_eq!(listed.state, SandboxState::Running);
    let is_there = format!("kill -0 {process} && echo there");
    assert_eq!(env.out(&old, &is_there).await, "there");
    assert!(has_tools(&other, &old, TOOLS_PORT).await, "as it was made");
    // Not the ready one that the launcher before had made.
    let new = other.create(&small()).await.expect("create").id;
    assert!(has_tools(&other, &new, OTHER_PORT).await);
    assert!(!has_tools(&other, &new, TOOLS_PORT).await);

    let build = env.data.with_file_name("launcher");
    copy_launcher(&build);
    let upgraded = server(&env, &build, OTHER_PORT).await;
    let third = launcher_of(&upgraded).await;
    assert_ne!(third, second, "another program file");
    assert_eq!(env.out(&old, &is_there).await, "there");
    drop((same, other, upgraded));
    env.finish().await;
}
