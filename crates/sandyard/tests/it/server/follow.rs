//! `sandyard logs -f` and `sandyard events -f`.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::Value;

use super::Server;

fn follow(server: &Server, arguments: &[&str]) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = server
        .command(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("start");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    (child, lines)
}

#[test]
fn a_log_is_followed_while_it_grows() {
    let server = Server::start();
    let id = server.out(&["create"]);
    server.out(&["exec", &id, "--", "echo", "before"]);
    let (mut child, mut lines) = follow(&server, &["logs", "-f", &id]);
    assert_eq!(lines.next().expect("a line").expect("text"), "before");
    server.out(&["exec", &id, "--", "echo", "after"]);
    assert_eq!(lines.next().expect("a line").expect("text"), "after");
    child.kill().expect("kill");
    child.wait().expect("wait");
}

#[test]
fn events_are_followed_to_the_end_of_a_sandbox_over_a_restart_of_the_server() {
    let mut server = Server::start();
    let id = server.out(&["create"]);
    let (mut child, lines) = follow(&server, &["events", "-f", "--json", &id]);
    let mut kinds = lines.map_while(Result::ok).map(|line| {
        let event: Value = serde_json::from_str(&line).expect("JSON");
        (
            event["seq"].as_i64().expect("a number"),
            event["kind"].as_str().expect("a word").to_owned(),
        )
    });
    let mut seen = vec![kinds.next().expect("an event")];
    while seen.last().is_some_and(|(_, kind)| kind != "running") {
        seen.push(kinds.next().expect("an event"));
    }
    server.restart();
    server.out(&["rm", &id]);
    seen.extend(kinds);
    assert_eq!(seen.last().map(|(_, kind)| kind.as_str()), Some("deleted"));
    assert!(seen.is_sorted_by(|one, two| one.0 < two.0), "{seen:?}");
    assert!(child.wait().expect("wait").success());
}
