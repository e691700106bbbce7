//! The tool server in real sandboxes. What serves here is the agent's own probe, which the launcher has in tests.

use sandyard_agent::TOOLS_PORT;
use sandyard_core::SandboxId;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::test_env::TestEnv;

/// Says something to the tool server, and returns the answer.
async fn ask(env: &TestEnv, id: &SandboxId, line: &str) -> String {
    let agent = env.engine.agent(id);
    let mut stream = agent.dial(TOOLS_PORT).await.expect("dial").stream;
    let line = format!("{line}\n");
    stream.write_all(line.as_bytes()).await.expect("say");
    let mut answer = Vec::new();
    while !answer.ends_with(b"\n") {
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).await.expect("hear");
        if count == 0 {
            let log = env
                .sh_as(id, "root", "cat /var/log/sandyard-tools.log*")
                .await;
            panic!(
                "it left at {line:?}: {}",
                crate::test_env::text(&log.stdout)
            );
        }
        answer.extend_from_slice(&bytes[..count]);
    }
    String::from_utf8(answer)
        .expect("text")
        .trim_end()
        .to_owned()
}

/// Checks the tool server of a fresh sandbox; `user` is who commands of `user` are there.
pub(crate) async fn check(env: &TestEnv, user: &str) {
    let id = env.create().await.id;
    let output = env.out(&id, "ps -eo comm | grep -c sandyard-tools").await;
    assert_eq!(output, "0", "unused it is not there");
    assert_eq!(ask(env, &id, "hello").await, "hello");
    let about: Value = serde_json::from_str(&ask(env, &id, "who").await).expect("JSON");
    assert_eq!(about["cwd"], "/workspace");
    assert_eq!(ask(env, &id, "run id -u").await.trim(), user);
    assert_eq!(env.out(&id, "stat -c %u /workspace").await, user);
    assert_eq!(
        ask(env, &id, "panic").await,
        "alive",
        "though the launcher ends on one"
    );
    let pid = about["pid"].as_u64().expect("a process");
    // Neither its user nor root inside sees its memory, nor the program file, which is the host's.
    let inspect = format!(
        "kill -0 {pid} && echo there; for f in environ mem maps; do \
         head -c 1 /proc/{pid}/$f >/dev/null 2>&1 && echo read $f; done; \
         readlink /proc/{pid}/exe; head -c 4 /proc/{pid}/exe 2>/dev/null; ls /proc/{pid}/fd 2>/dev/null"
    );
    assert_eq!(env.out(&id, &inspect).await, "there");
    let by_root = env.sh_as(&id, "root", &inspect).await;
    assert_eq!(crate::test_env::text(&by_root.stdout), "there");
    // It is paused with its sandbox, and gone with it.
    env.engine.pause(&id).await.expect("pause");
    env.engine.resume(&id).await.expect("resume");
    assert_eq!(ask(env, &id, "again").await, "again");
    env.engine.stop(&id).await.expect("stop");
    env.engine.start(&id).await.expect("start");
    assert_eq!(ask(env, &id, "anew").await, "anew");
}

#[tokio::test]
async fn every_sandbox_has_a_tool_server_once_it_is_asked_for() {
    let env = TestEnv::new().await;
    check(&env, "1000").await;
    env.finish().await;
}
