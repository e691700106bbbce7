//! One command in a shell of its own.

use serde_json::{Value, json};

use super::{TestEnv, is_gone};
use crate::call::Call;

async fn once(env: &TestEnv, arguments: Value) -> Value {
    env.call("run_command", arguments)
        .await
        .unwrap()
        .structured()
        .unwrap()
        .clone()
}

#[tokio::test]
async fn it_answers_output_and_exit_code_and_keeps_nothing() {
    let env = TestEnv::new();
    std::fs::create_dir(env.root().join("inner")).unwrap();
    let ran = once(
        &env,
        json!({"command": "echo out; echo err >&2; A=1; cd /; exit 3"}),
    )
    .await;
    assert_eq!(
        (&ran["output"], &ran["exit_code"]),
        (&json!("out\nerr"), &json!(3))
    );
    let ran = once(
        &env,
        json!({"command": "echo \"[$A]\"; pwd; cat; [ -t 0 ] || echo none", "cwd": "inner"}),
    )
    .await;
    assert_eq!(
        ran["output"],
        format!("[]\n{}\nnone", env.root().join("inner").display())
    );
    let problem = env
        .call("run_command", json!({"command": "true", "cwd": "/etc"}))
        .await
        .unwrap_err();
    assert!(problem.to_string().contains("outside"), "{problem}");
    let ran = once(&env, json!({"command": "seq 1 100000\necho 'open"})).await;
    assert_eq!(ran["is_cut"], true);
    assert_ne!(ran["exit_code"], 0);
    assert!(ran["output"].as_str().unwrap().contains("unexpected EOF"));
}

#[tokio::test]
async fn what_takes_too_long_is_ended_and_what_stays_behind_is_not_waited_for() {
    let env = TestEnv::new();
    let command = "echo begun; setsid sleep 1000 & echo $! >pid; sleep 1001 & echo $! >>pid; wait";
    // A busy machine may not have got to the wait in the shorter times.
    let mut timeouts = [5, 30, 120].into_iter();
    let pids = loop {
        let timeout = timeouts.next().expect("it never gets to the wait");
        let ran = once(&env, json!({"command": command, "timeout": timeout})).await;
        assert_eq!(
            (&ran["is_timed_out"], &ran["exit_code"]),
            (&json!(true), &Value::Null)
        );
        let pids = std::fs::read_to_string(env.root().join("pid")).unwrap_or_default();
        if pids.lines().count() == 2 && pids.ends_with('\n') {
            assert_eq!(ran["output"], "begun");
            break pids;
        }
    };
    for pid in pids.lines() {
        assert!(is_gone(pid).await, "{pid}");
    }
    let ran = once(&env, json!({"command": "sleep 1000 & echo $!"})).await;
    assert_eq!(ran["exit_code"], 0);
    let pid = ran["output"].as_str().unwrap().to_owned();
    once(&env, json!({"command": format!("kill -9 {pid}")})).await;
    assert!(is_gone(&pid).await);
}

#[tokio::test]
async fn a_cancelled_call_ends_it() {
    let env = TestEnv::new();
    let call = Call::quiet();
    let cancelled = call.cancelled.clone();
    let running = env.call_as(
        "run_command",
        json!({"command": "echo $$ >pid; sleep 1000; :"}),
        call,
    );
    let file = env.root().join("pid");
    let cancel = async {
        while !std::fs::read_to_string(&file).is_ok_and(|pid| pid.ends_with('\n')) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        cancelled.cancel();
    };
    let (answer, ()) = tokio::join!(running, cancel);
    assert!(answer.unwrap_err().to_string().contains("cancelled"));
    assert!(is_gone(std::fs::read_to_string(&file).unwrap().trim()).await);
}
