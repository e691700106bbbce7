//! What needs neither a server nor a sandbox.

use std::fs::File;
use std::process::{Command, Output, Stdio};

fn sandyard(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandyard"));
    // Nothing of the host's settings, and no `.env`.
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

fn said(output: &Output) -> String {
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
    assert!(said(&output).contains("No space left"), "{}", said(&output));
}

#[test]
fn completions_name_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&["completions", shell]);
        let script = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && script.contains("snapshot"),
            "{shell}"
        );
    }
}

#[test]
fn help_of_the_launcher_is_help() {
    for words in [["launcher", "--help"], ["launcher", "-h"]] {
        let output = run(&words);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && text.contains("--idle-exit"),
            "{text}"
        );
    }
}

#[test]
fn a_server_that_is_not_there_can_be_started() {
    // Nobody is given this port, as may happen to one that was free a moment ago.
    let url = "http://127.0.0.1:1";
    let output = run(&["--url", url, "ls"]);
    assert_eq!(output.status.code(), Some(125));
    let said = said(&output);
    let expected = format!("error: no server at `{url}`");
    assert!(said.starts_with(&expected), "{said}");
    assert!(
        said.contains("\nhint: start it with `./run` or `sandyard serve`"),
        "{said}"
    );
}

#[test]
fn what_makes_no_sense_is_told_with_2() {
    for words in [
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
        assert_eq!(run(words).status.code(), Some(2), "{words:?}");
    }
}

#[test]
fn copies_need_exactly_one_sandbox() {
    for (from, to, expected) in [
        ("a", "b", "neither is in a sandbox"),
        ("x:a", "y:b", "both are in sandboxes"),
    ] {
        let output = run(&["cp", from, to]);
        assert_eq!(output.status.code(), Some(125));
        assert!(said(&output).contains(expected), "{}", said(&output));
    }
}

#[test]
fn settings_are_checked_before_anything_is_served() {
    assert!(run(&["config", "check"]).status.success());
    let wrong = run(&["config", "check", "--port", "many", "--auth", "maybe"]);
    assert_eq!(wrong.status.code(), Some(1));
    let told = said(&wrong);
    assert!(
        told.contains("server.port") && told.contains("auth.mode"),
        "{told}"
    );
    let refused = run(&["serve", "--host", "0.0.0.0", "--auth", "open"]);
    assert_eq!(refused.status.code(), Some(125));
    assert!(said(&refused).contains("auth.mode"), "{}", said(&refused));
}

#[test]
fn settings_in_force_are_shown_with_their_origin_and_without_secrets() {
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
