//! Commands that need neither a server nor a sandbox.

use std::fs::File;
use std::process::{Command, Output, Stdio};

fn sandyard(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandyard"));
    // Without the host.s settings and `.env`.
    command
        .args(arguments)
        .env_clear()
        .env("HOME", "/nonexistent")
        .current_dir("/")
        .stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    sandyard(arguments).output().expect("run the program")
}

fn stderr_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn results_that_cannot_be_written_are_a_failure() {
    let full = File::options()
        .write(true)
        .open("/dev/full")
        .expect("open it");
    let output = sandyard(&["completions", "bash"])
        .stdout(full)
        .output()
        .expect("run the program");
    assert_eq!(output.status.code(), Some(125));
    assert!(
        stderr_of(&output).contains("No space left"),
        "{}",
        stderr_of(&output)
    );
}

#[test]
fn completion_scripts_ask_the_program() {
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&["completions", shell]);
        let script = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && script.contains("SANDYARD_COMPLETE"),
            "{shell}"
        );
    }
}

#[test]
fn the_launcher_has_help() {
    for arguments in [["launcher", "--help"], ["launcher", "-h"]] {
        let output = run(&arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && text.contains("--idle-exit"),
            "{text}"
        );
    }
}

#[test]
fn an_unreachable_server_is_reported_with_a_hint() {
    // No program gets this port, which could happen to a port that was free a moment ago.
    let url = "http://127.0.0.1:1";
    let output = run(&["--url", url, "ls"]);
    assert_eq!(output.status.code(), Some(125));
    let stderr = stderr_of(&output);
    let expected = format!("error: no server at `{url}`");
    assert!(stderr.starts_with(&expected), "{stderr}");
    assert!(
        stderr.contains("\nhint: start the server with `./run` or `sandyard serve`"),
        "{stderr}"
    );
}

#[test]
fn invalid_options_exit_with_2() {
    for arguments in [
        &["create", "--memory", "lots"][..],
        &["create", "--env", "nothing"],
        &["create", "--timeout", "soon"],
        &["exec", "id"],
        &["exec", "--detach", "-it", "id", "--", "true"],
        &["ports", "open", "id", "0"],
        &["ports", "open", "id", "70000"],
        &["timeout", "id", "1x"],
        &["nonsense"],
    ] {
        assert_eq!(run(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn copies_need_a_sandbox() {
    let output = run(&["cp", "a", "b"]);
    assert_eq!(output.status.code(), Some(125));
    let stderr = stderr_of(&output);
    assert!(
        stderr.contains("neither source nor target is in a sandbox"),
        "{stderr}"
    );
}

#[test]
fn settings_are_checked_before_the_server_starts() {
    assert!(run(&["config", "check"]).status.success());
    let wrong = run(&["config", "check", "--port", "many", "--auth", "maybe"]);
    assert_eq!(wrong.status.code(), Some(1));
    let stderr = stderr_of(&wrong);
    assert!(
        stderr.contains("server.port") && stderr.contains("auth.mode"),
        "{stderr}"
    );
    let refused = run(&["serve", "--host", "0.0.0.0", "--auth", "open"]);
    assert_eq!(refused.status.code(), Some(125));
    assert!(
        stderr_of(&refused).contains("auth.mode"),
        "{}",
        stderr_of(&refused)
    );
}

#[test]
fn config_show_hides_secrets() {
    let output = sandyard(&["config", "show", "--json", "--port", "9000"])
        .env(
            "JWT_SECRET",
            "a-very-long-secret-of-more-than-32-characters",
        )
        .output()
        .expect("run the program");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let shown: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(shown["server.port"]["value"], "9000");
    assert!(!text.contains("very-long-secret"), "{text}");
}
