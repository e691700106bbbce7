//! With programs that speak like the real ones; those are run in the tests of the template that has them.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::call::{Call, Progress};
use crate::files::test_env::{TestEnv, write_program};

/// A program at a place that is searched in the home.
fn program(env: &TestEnv, name: &str, script: &str) {
    let file = env.path(&format!(".local/bin/{name}"));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    write_program(&file, &format!("#!/bin/sh\n{script}"));
}

const CLAUDE: &str = r#"
echo "$@" > args; cat > prompt
echo '{"type":"system","subtype":"init","session_id":"s-1"}'
echo 'no json'
echo '{"type":"assistant","session_id":"s-1","message":{"content":[{"type":"text","text":"I look."},{"type":"tool_use","name":"Bash","input":{"command":"ls  -l"}}]}}'
echo '{"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"All done.","session_id":"s-1","total_cost_usd":0.5}'
"#;

const CODEX: &str = r#"
echo "$@" > args; cat > prompt
echo '{"type":"thread.started","thread_id":"t-1"}'
echo '{"type":"turn.started"}'
echo '{"type":"item.started","item":{"id":"1","type":"command_execution","command":"ls"}}'
echo '{"type":"item.completed","item":{"id":"2","type":"agent_message","text":"All done."}}'
echo '{"type":"turn.completed","usage":{}}'
"#;

async fn watched(env: &TestEnv, tool: &str, args: Value) -> (Value, String, Vec<String>) {
    let messages = Arc::<Mutex<Vec<String>>>::default();
    let writer = messages.clone();
    let progress = Progress::new(Arc::new(move |_, text| {
        writer.lock().unwrap().push(text);
        Box::pin(async {})
    }));
    let call = Call {
        progress,
        ..Call::quiet()
    };
    let reply = env.call_with(tool, args, call).await.unwrap();
    let messages = messages.lock().unwrap().clone();
    (
        reply.structured().unwrap().clone(),
        reply.all_text(),
        messages,
    )
}

#[tokio::test]
async fn claude_code_is_run_and_heard() {
    let env = TestEnv::new();
    program(&env, "claude", CLAUDE);
    let prompt = "--help; $(touch hacked)\nand more";
    let args =
        json!({"prompt": prompt, "model": "some-model", "max_turns": 3, "session_id": "s-0"});
    let (outcome, text, messages) = watched(&env, "claude_code", args).await;
    assert_eq!(text, "All done.");
    assert_eq!(messages, ["I look.", "Bash: ls -l"]);
    assert_eq!(env.content("prompt"), prompt);
    let given = env.content("args");
    for option in [
        "-p",
        "stream-json",
        "--model some-model",
        "--max-turns 3",
        "--resume s-0",
        "--dangerously-skip-permissions",
    ] {
        assert!(given.contains(option), "{given}");
    }
    assert_eq!(
        (&outcome["session_id"], &outcome["text"]),
        (&json!("s-1"), &json!(text))
    );
    assert_eq!(
        (
            &outcome["exit_code"],
            &outcome["num_turns"],
            &outcome["cost_usd"]
        ),
        (&json!(0), &json!(2), &json!(0.5))
    );
    assert_eq!(outcome["is_error"], false);
    let allowed = json!({"prompt": "x", "allowed_tools": ["Read", "Bash(git:*)"]});
    watched(&env, "claude_code", allowed).await;
    let given = env.content("args");
    assert!(
        given.contains("--allowedTools Read,Bash(git:*)") && !given.contains("skip-permissions"),
        "{given}"
    );
}

#[tokio::test]
async fn codex_is_run_and_heard() {
    let env = TestEnv::new();
    program(&env, "codex", CODEX);
    let (outcome, text, messages) = watched(&env, "codex", json!({"prompt": "do it"})).await;
    assert_eq!(text, "All done.");
    assert_eq!(messages, ["command: ls", "All done."]);
    assert_eq!(
        (&outcome["session_id"], &outcome["is_error"]),
        (&json!("t-1"), &json!(false))
    );
    assert_eq!(outcome["text"], text);
    assert_eq!(env.content("prompt"), "do it");
    let given = env.content("args");
    assert!(
        given.starts_with("exec --json") && given.trim().ends_with(" -"),
        "{given}"
    );
}

#[tokio::test]
async fn failures_say_why() {
    let env = TestEnv::new();
    program(&env, "claude", "echo 'no key' >&2; exit 7");
    let reply = env
        .call("claude_code", json!({"prompt": "x"}))
        .await
        .unwrap();
    assert!(reply.is_error());
    assert!(reply.all_text().contains("no key"), "{}", reply.all_text());
    let outcome = reply.structured().unwrap();
    assert_eq!(outcome["exit_code"], 7);
    assert_eq!(outcome["text"], reply.all_text());
    program(
        &env,
        "codex",
        r#"echo '{"type":"turn.failed","error":{"message":"over quota"}}'; exit 1"#,
    );
    let reply = env.call("codex", json!({"prompt": "x"})).await.unwrap();
    assert!(reply.is_error() && reply.all_text().contains("over quota"));
    for (args, words) in [
        (json!({"prompt": " "}), "empty"),
        (json!({"prompt": "x", "model": "--evil"}), "model"),
        (json!({"prompt": "x", "session_id": "-r"}), "session_id"),
        (json!({"prompt": "x", "cwd": "/etc"}), "outside"),
        (json!({"prompt": "x", "cwd": "missing"}), "not a folder"),
        (json!({"prompt": "x", "timeout": 0}), "timeout"),
        (
            json!({"prompt": "x", "allowed_tools": ["a,b"]}),
            "allowed_tools",
        ),
    ] {
        let problem = env.problem("claude_code", args).await;
        assert!(problem.contains(words), "{problem}");
    }
}

#[tokio::test]
async fn time_outs_and_cancellation_end_everything() {
    let env = TestEnv::new();
    program(&env, "claude", "sleep 1000 & echo $! > sleeper; wait");
    let sleeper = || std::fs::read_to_string(env.path("sleeper")).unwrap_or_default();
    let is_begun = || sleeper().ends_with('\n');
    let is_over = || {
        let pid = sleeper();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        stat.map_or(true, |stat| stat.contains(") Z"))
    };
    // A busy machine may not even have begun with it in the shorter times.
    for timeout in [5, 30, 120] {
        let reply = env
            .call("claude_code", json!({"prompt": "x", "timeout": timeout}))
            .await
            .unwrap();
        let message = format!("after {timeout} seconds");
        assert!(reply.is_error() && reply.all_text().contains(&message));
        if is_begun() {
            break;
        }
    }
    assert!(is_begun(), "it never began");
    crate::custom::testing::until("the sleeper is gone", is_over).await;
    std::fs::remove_file(env.path("sleeper")).unwrap();
    let call = Call::quiet();
    let cancelled = call.cancelled.clone();
    let stop = async {
        crate::custom::testing::until("it runs", is_begun).await;
        cancelled.cancel();
    };
    let (answer, ()) = tokio::join!(
        env.call_with("claude_code", json!({"prompt": "x"}), call),
        stop
    );
    assert!(answer.unwrap().all_text().contains("cancelled"));
    crate::custom::testing::until("the sleeper is gone", is_over).await;
}

#[tokio::test]
async fn without_a_cli_it_is_said_how_to_get_one() {
    let env = TestEnv::new();
    for (tool, program, package) in [
        ("claude_code", "claude", "@anthropic-ai/claude-code"),
        ("codex", "codex", "@openai/codex"),
    ] {
        if crate::process::find_program(program, &[]).is_none() {
            let problem = env.problem(tool, json!({"prompt": "x"})).await;
            assert!(
                problem.contains(package) && problem.contains("template"),
                "{problem}"
            );
        }
    }
}
