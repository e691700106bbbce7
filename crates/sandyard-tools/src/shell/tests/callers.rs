//! Callers that go away, callers that watch, and the end of the server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use super::{MAX_WAIT, TestEnv, is_gone};
use crate::call::{Call, Progress};

#[tokio::test]
async fn a_cancelled_call_stops_its_command() {
    let env = TestEnv::new();
    env.run("true").await;
    let call = Call::quiet();
    let cancelled = call.cancelled.clone();
    let arguments = json!({"session_name": "s", "command": "echo $BASHPID >pid; sleep 1000"});
    let running = env.call_as("Bash", arguments, call);
    let cancel = async {
        env.see_state("busy for").await;
        cancelled.cancel();
    };
    let (reply, ()) = tokio::join!(running, cancel);
    assert_eq!(reply.unwrap().structured().unwrap()["is_running"], false);
    assert_eq!(env.run("echo free").await, ("free".into(), 0));
}

#[tokio::test]
async fn the_caller_gets_the_last_line_as_progress() {
    let env = TestEnv::new();
    let messages = Arc::new(Mutex::new(Vec::new()));
    let writer = messages.clone();
    let call = Call {
        progress: Progress::new(Arc::new(move |step, text| {
            writer.lock().unwrap().push((step, text));
            Box::pin(async {})
        })),
        ..Call::quiet()
    };
    let arguments = json!({"session_name": "s", "command": "echo step one; until [ -e go ]; do sleep 0.05; done"});
    let has_line = || {
        let messages = messages.lock().unwrap();
        messages.iter().any(|(_, text)| text == "step one")
    };
    let wait = async {
        let begin = std::time::Instant::now();
        while !has_line() {
            assert!(begin.elapsed() < MAX_WAIT, "it is never told");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        std::fs::write(env.root().join("go"), "").unwrap();
    };
    let (reply, ()) = tokio::join!(env.call_as("Bash", arguments, call), wait);
    assert_eq!(reply.unwrap().structured().unwrap()["exit_code"], 0);
    // On a busy machine it may not have printed anything the first times.
    let messages = messages.lock().unwrap();
    let (steps, text): (Vec<u64>, Vec<String>) = messages.iter().cloned().unzip();
    assert!(
        steps.into_iter().eq(1..=messages.len() as u64),
        "{messages:?}"
    );
    assert_eq!(text.last().unwrap(), "step one");
}

#[test]
fn shells_end_with_the_server() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let env = TestEnv::new();
    let pids = runtime.block_on(async {
        env.start("sleep 1000 & echo pids $$ $!; sleep 1001").await;
        let seen = env.see("pids ").await.all_text();
        seen.split("pids ")
            .last()
            .unwrap()
            .lines()
            .next()
            .unwrap()
            .to_owned()
    });
    drop(env);
    drop(runtime);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    for pid in pids.split_whitespace() {
        assert!(runtime.block_on(is_gone(pid)), "{pid}");
    }
}
