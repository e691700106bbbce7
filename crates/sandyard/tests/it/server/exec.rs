//! `sandyard exec` without a terminal.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use super::{Server, eventually, stderr_of};

#[test]
fn output_and_exit_code_are_those_of_the_command() {
    let server = Server::start();
    let id = server.out(&["create"]);
    let script = "echo out; echo err >&2; exit 7";
    let output = server.sandyard(&["exec", &id, "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(output.stdout, b"out\n");
    assert_eq!(output.stderr, b"err\n");
    let there = server.out(&[
        "exec",
        "-u",
        "root",
        "-w",
        "/tmp",
        "-e",
        "A=b c",
        &id,
        "--",
        "sh",
        "-c",
        "echo $(id -u) $(pwd) $A",
    ]);
    assert_eq!(there, "0 /tmp b c");
}

#[test]
fn failures_have_their_own_exit_codes() {
    let server = Server::start();
    let id = server.out(&["create"]);
    let code = |arguments: &[&str]| {
        server
            .sandyard(&[&["exec"], arguments].concat())
            .status
            .code()
    };
    assert_eq!(
        code(&["--timeout", "0.5", &id, "--", "sleep", "100"]),
        Some(124)
    );
    assert_eq!(code(&[&id, "--", "no-such-command"]), Some(127));
    assert_eq!(code(&["--cwd", "/no/such", &id, "--", "true"]), Some(127));
    assert_eq!(code(&["nosuch", "--", "true"]), Some(125));
    assert_eq!(code(&[&id, "--", "sh", "-c", "kill -KILL $$"]), Some(137));
}

#[test]
fn standard_input_is_forwarded_only_with_interactive() {
    let server = Server::start();
    let id = server.out(&["create"]);
    let run = |arguments: &[&str], input: Vec<u8>| {
        let mut child = server
            .command(&[&["exec"], arguments].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start");
        let _ = child.stdin.take().expect("a pipe").write_all(&input);
        let output = child.wait_with_output().expect("wait");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    // More than any pipe or buffer on the way holds.
    let much = vec![b'x'; 3 << 20];
    assert_eq!(
        run(&["-i", &id, "--", "wc", "-c"], much),
        (3 << 20).to_string()
    );
    assert_eq!(run(&[&id, "--", "wc", "-c"], b"not for it".to_vec()), "0");
}

#[test]
fn json_has_output_and_exit_code() {
    let server = Server::start();
    let id = server.out(&["create"]);
    let output = server.sandyard(&["exec", "--json", &id, "--", "sh", "-c", "echo a; exit 4"]);
    assert_eq!(output.status.code(), Some(4));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (&result["stdout"], &result["exit_code"]),
        (&"a\n".into(), &4.into())
    );
}

#[test]
fn a_detached_command_keeps_running_and_logs_its_output() {
    let server = Server::start();
    let id = server.out(&["create"]);
    let script = "echo from afar; sleep 1000";
    let pid = server.out(&["exec", "--detach", &id, "--", "sh", "-c", script]);
    assert!(pid.parse::<u32>().is_ok(), "{pid}");
    eventually("the log has it", || {
        server.out(&["logs", &id]) == "from afar"
    });
    server.out(&["exec", &id, "--", "kill", "-0", &pid]);
}

#[test]
fn an_interrupt_is_sent_to_the_command() {
    let server = Server::start();
    let id = server.out(&["create"]);
    let script = "trap 'exit 9' INT; echo up; while :; do sleep 0.05; done";
    let mut child = server
        .command(&["exec", &id, "--", "bash", "-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .expect("start");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert_eq!(lines.next().expect("a line").expect("text"), "up");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("signal");
    assert_eq!(child.wait().expect("wait").code(), Some(9));
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let server = Server::start();
    let id = server.out(&["create"]);
    let mut child = server
        .command(&["exec", &id, "--", "yes"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert_eq!(lines.next().expect("a line").expect("text"), "y");
    drop(lines);
    let output = child.wait_with_output().expect("wait");
    assert_eq!(
        (output.status.code(), stderr_of(&output)),
        (Some(141), String::new())
    );
}
