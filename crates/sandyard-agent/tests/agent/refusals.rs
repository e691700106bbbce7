//! Answers that are sent before the request's body was read: the client can read them and continue.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use crate::common::Agent;

/// How long the agent waits for the rest of a body that it does not want.
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// Requests that are refused for their heads alone: method, path, content type, status.
const REFUSED: [(&str, &str, &str, u16); 6] = [
    (
        "POST",
        "/filesystem.Filesystem/ListDir",
        "application/json",
        401,
    ),
    ("POST", "/files?path=/tmp/x", "text/plain", 401),
    ("POST", "/no/such/route", "text/plain", 404),
    ("PUT", "/files?path=/tmp/x", "text/plain", 405),
    ("POST", "/filesystem.Filesystem/ListDir", "text/plain", 415),
    ("POST", "/files", "application/octet-stream", 400),
];

/// The token is shown unless its absence is what is tested.
fn headers(content_type: &'static str, status: u16) -> Vec<(&'static str, &'static str)> {
    let mut headers = vec![("content-type", content_type)];
    if status != 401 {
        headers.push(("x-access-token", "secret"));
    }
    headers
}

/// The head of a request that announces a body.
fn head(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let lines: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    format!("{method} {path} HTTP/1.1\r\nhost: agent\r\n{lines}{body}\r\n\r\n")
}

#[test]
fn a_connection_goes_on_after_a_refusal() {
    let agent = Agent::start_with(&["--token", "secret"]);
    // More than the agent takes in one read, so that some of it is still on its way when the refusal is known.
    let body = vec![b'x'; 600_000];
    let mut connection = agent.tcp();
    for (method, path, content_type, status) in REFUSED {
        loop {
            let start_time = Instant::now();
            let reply = connection.request(method, path, &headers(content_type, status), &body);
            assert_eq!(reply.status, status, "{path}: {}", reply.text());
            if reply.header("connection").is_none() {
                break;
            }
            // A body is waited for no longer than this, and we may have been kept from sending it.
            assert!(start_time.elapsed() >= DRAIN_TIME, "{path}");
            connection = agent.tcp();
        }
        assert_eq!(connection.request("GET", "/health", &[], b"").status, 204);
    }
}

#[test]
fn a_refusal_says_that_the_connection_ends_with_it_if_the_body_is_long_or_of_unknown_length() {
    let agent = Agent::start_with(&["--token", "secret"]);
    for (method, path, content_type, status) in REFUSED {
        for announced in ["content-length: 1073741824", "transfer-encoding: chunked"] {
            let mut connection = agent.tcp();
            let head = head(method, path, &headers(content_type, status), announced);
            connection.writer.write_all(head.as_bytes()).unwrap();
            let reply = connection.read_reply(method);
            assert_eq!(reply.status, status, "{path}: {}", reply.text());
            assert_eq!(reply.header("connection"), Some("close"), "{path}");
        }
    }
}

#[test]
fn a_client_that_sends_before_it_reads_gets_the_refusal_of_a_long_body() {
    let agent = Agent::start_with(&["--token", "secret"]);
    let mut connection = agent.tcp();
    let length = 8 * 1024 * 1024;
    let head = head(
        "POST",
        "/files?path=/tmp/x",
        &[],
        &format!("content-length: {length}"),
    );
    connection.writer.write_all(head.as_bytes()).unwrap();
    connection.writer.write_all(&vec![b'x'; length]).unwrap();
    let reply = connection.read_reply("POST");
    assert_eq!(
        (reply.status, reply.header("connection")),
        (401, Some("close"))
    );
    let mut rest = Vec::new();
    connection.reader.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"");
}

#[test]
fn a_refused_body_is_not_asked_for() {
    let agent = Agent::start_with(&["--token", "secret"]);
    let mut connection = agent.tcp();
    let expect = [("expect", "100-continue")];
    let head = head("POST", "/files?path=/tmp/x", &expect, "content-length: 2");
    connection.writer.write_all(head.as_bytes()).unwrap();
    let reply = connection.read_reply("POST");
    assert_eq!(
        (reply.status, reply.header("connection")),
        (401, Some("close"))
    );
}

#[test]
fn a_body_that_never_comes_does_not_hold_the_refusal_back() {
    let agent = Agent::start_with(&["--token", "secret"]);
    let mut connection = agent.tcp();
    let head = head("POST", "/files?path=/tmp/x", &[], "content-length: 2");
    connection.writer.write_all(head.as_bytes()).unwrap();
    let reply = connection.read_reply("POST");
    assert_eq!(
        (reply.status, reply.header("connection")),
        (401, Some("close"))
    );
}
