//! What output comes to.

use std::time::Duration;

use serde_json::json;

use super::super::bounded_text::MAX_OUTPUT;
use super::TestEnv;
use crate::shell::command_input;

#[tokio::test]
async fn terminal_signs_become_plain_text() {
    let env = TestEnv::new();
    for (command, output) in [
        (r"printf '\033[31mred\033[0m\n'", "red"),
        (
            r"for i in 1 50 100; do printf '\r%s%%' $i; done; echo",
            "100%",
        ),
        (r"printf 'a\0b\377c\n'", "ab\u{fffd}c"),
        (r"printf 'one\ntwo\n\033[1A\033[2K2\n'", "one\n2"),
        ("ls --color=always -d .", "."),
        (r"printf '\033]0;title\007x'", "x"),
        (r"printf 'a\tb  \n  c'", "a\tb  \n  c"),
    ] {
        assert_eq!(env.run(command).await.0, output, "{command}");
    }
}

#[tokio::test]
async fn markers_in_output_have_no_effect() {
    let env = TestEnv::new();
    let other = command_input::nonce();
    assert_ne!(other, command_input::nonce());
    let command = format!(
        r"printf 'before \033]5379;{other};E0\007 after'; set; declare -p PROMPT_COMMAND; set -x; :; set +x; (exit 9)"
    );
    let (printed, code) = env.run(&command).await;
    assert!(printed.starts_with("before  after"), "{printed}");
    assert_eq!(code, 9);
    // Not even the shell's own lines, read back and printed.
    let (printed, code) = env
        .run(r#"printf '%s\n' "$PROMPT_COMMAND" "$PS1"; (exit 8)"#)
        .await;
    assert!(printed.contains("5379"), "{printed}");
    assert_eq!(code, 8);
}

#[tokio::test]
async fn long_output_keeps_its_beginning_and_end() {
    let env = TestEnv::new();
    let reply = env.bash("seq 1 200000").await;
    let ran = reply.structured().unwrap();
    let output = ran["output"].as_str().unwrap();
    assert_eq!(ran["is_cut"], true);
    assert!(output.starts_with("1\n2\n3\n") && output.ends_with("\n199999\n200000"));
    assert!(output.contains(" omitted;") && output.len() < MAX_OUTPUT + 200);
    let reply = env.bash("head -c 3000000 /dev/zero | tr '\\0' x").await;
    assert_eq!(reply.structured().unwrap()["is_cut"], true);
    assert_eq!(env.run("echo small").await.0, "small");
}

#[tokio::test]
async fn output_without_end_is_bounded_and_can_be_stopped_while_others_work() {
    let env = TestEnv::new();
    let arguments = json!({"session_name": "s", "command": "yes", "timeout": 1});
    let reply = env.call("Bash", arguments).await.unwrap();
    let ran = reply.structured().unwrap();
    assert_eq!(
        (&ran["is_running"], &ran["exit_code"]),
        (&json!(true), &json!(null))
    );
    assert!(ran["output"].as_str().unwrap().len() < MAX_OUTPUT + 200);
    for _ in 0..5 {
        let arguments = json!({"session_name": "other", "command": "echo turn"});
        let reply = tokio::time::timeout(Duration::from_secs(90), env.call("Bash", arguments))
            .await
            .unwrap();
        assert_eq!(reply.unwrap().structured().unwrap()["output"], "turn");
    }
    env.stop().await.unwrap();
    assert_eq!(env.run("echo stopped").await, ("stopped".into(), 0));
}

#[tokio::test]
async fn random_bytes_do_no_harm() {
    let env = TestEnv::new();
    let (_, code) = env.run("head -c 300000 /dev/urandom; echo; (exit 4)").await;
    assert_eq!(code, 4);
    assert_eq!(env.run("echo 'still fine'").await, ("still fine".into(), 0));
}
