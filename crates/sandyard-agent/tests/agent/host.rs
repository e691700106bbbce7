//! The two listeners: who may do what, and what only the host may do.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::common::http::Reply;
use crate::common::{Agent, wait_until};
use sandyard_wire::signature::{Operation, SignedUrl, sign};
use serde_json::json;

#[test]
fn only_the_host_comes_in_without_the_token() {
    let agent = Agent::start_with(&["--token", "secret"]);
    assert_eq!(agent.tcp().request("GET", "/health", &[], b"").status, 204);
    for (path, headers) in [
        ("/envs", vec![]),
        ("/envs", vec![("x-access-token", "wrong")]),
        ("/metrics", vec![]),
        ("/files?path=/etc/hostname", vec![]),
    ] {
        let reply = agent.tcp().request("GET", path, &headers, b"");
        assert_eq!(
            (reply.status, &reply.json()["code"]),
            (401, &json!(401)),
            "{path}"
        );
    }
    let token = [("x-access-token", "secret")];
    assert_eq!(agent.tcp().request("GET", "/envs", &token, b"").status, 200);
    assert_eq!(agent.host().request("GET", "/envs", &[], b"").status, 200);
}

#[test]
fn a_signature_opens_one_file() {
    let agent = Agent::start_with(&["--token", "secret"]);
    let file = agent.path("f");
    std::fs::write(&file, "content").unwrap();
    let path = file.to_str().unwrap();
    let url = |expiration: Option<i64>, operation| {
        let signature = sign(
            &SignedUrl {
                path,
                operation,
                user: "",
                expiration,
            },
            "secret",
        );
        let signature = signature.replace('+', "%2B").replace('/', "%2F");
        let expires = expiration.map_or(String::new(), |at| format!("&signature_expiration={at}"));
        format!("/files?path={path}&signature={signature}{expires}")
    };
    let get = |url: &str| agent.tcp().request("GET", url, &[], b"");
    assert_eq!(get(&url(None, Operation::Read)).text(), "content");
    assert_eq!(
        get(&url(Some(4_000_000_000), Operation::Read)).text(),
        "content"
    );
    assert_eq!(get(&url(None, Operation::Write)).status, 401);
    for reply in [
        get(&url(Some(1_000_000_000), Operation::Read)),
        agent
            .host()
            .request("GET", &url(Some(1_000_000_000), Operation::Read), &[], b""),
    ] {
        assert_eq!(
            reply.json(),
            json!({"code": 401, "message": "signature is already expired"})
        );
    }
    let write = agent
        .tcp()
        .request("POST", &url(None, Operation::Write), &[], b"new");
    assert_eq!(write.status, 200, "{}", write.text());
    assert_eq!(std::fs::read(&file).unwrap(), b"new");
}

#[test]
fn host_routes_do_not_exist_inside() {
    let agent = Agent::start();
    for (method, path) in [
        ("POST", "/init"),
        ("GET", "/activity"),
        ("GET", "/dial?port=1"),
        ("GET", "/egress"),
    ] {
        let reply = agent.tcp().request(method, path, &[], b"{}");
        assert_eq!(reply.status, 404, "{path}");
    }
}

#[test]
fn init_may_be_sent_again_and_again() {
    let agent = Agent::start();
    let init = |body: serde_json::Value| {
        agent
            .host()
            .request("POST", "/init", &[], body.to_string().as_bytes())
            .status
    };
    assert_eq!(
        init(json!({"envVars": {"A": "1"}, "accessToken": "t1"})),
        204
    );
    assert_eq!(agent.tcp().request("GET", "/envs", &[], b"").status, 401);
    let dir = agent.dir.path().to_str().unwrap();
    assert_eq!(
        init(json!({"accessToken": "t2", "defaultWorkdir": dir})),
        204
    );
    let envs = agent
        .tcp()
        .request("GET", "/envs", &[("x-access-token", "t2")], b"");
    assert_eq!(envs.json(), json!({"A": "1"}));
    let outcome = agent.shell("echo $A; pwd").finish();
    assert_eq!(outcome.stdout_text(), format!("1\n{dir}\n"));
    assert_eq!(init(json!({"envVars": 5})), 400);
}

#[test]
fn activity_counts_what_goes_on() {
    let agent = Agent::start();
    let activity = || agent.host().request("GET", "/activity", &[], b"").json();
    assert_eq!(activity().get("processes"), None);
    let mut stream = agent.shell("sleep 600");
    let pid = stream.pid();
    let busy = activity();
    assert_eq!(
        (&busy["processes"], &busy["streams"]),
        (&json!(1), &json!(1))
    );
    let signal = json!({"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"});
    agent.call("/process.Process/SendSignal", &signal);
    stream.finish();
    let requests: u64 = activity()["requests"].as_str().unwrap().parse().unwrap();
    assert_eq!(requests, 2, "asking for activity does not count");
}

#[test]
fn a_port_inside_is_reached_through_the_host_listener() {
    let agent = Agent::start();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        stream.read_to_end(&mut request).unwrap();
        stream.write_all(b"you said: ").unwrap();
        stream.write_all(&request).unwrap();
    });
    let upgrade = [("connection", "upgrade"), ("upgrade", "sandyard-dial")];
    let mut connection = agent.host();
    connection.send("GET", &format!("/dial?port={port}"), &upgrade, b"");
    let reply = connection.read_head();
    assert_eq!(reply.status, 101);
    assert_eq!(reply.header("upgrade"), Some("sandyard-dial"));
    let long = vec![b'x'; 1_000_000];
    connection.writer.write_all(&long).unwrap();
    connection.writer.half_close();
    let mut answer = Vec::new();
    connection.reader.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, [b"you said: ", &long[..]].concat());
    server.join().unwrap();
    // A program that another test is about to start has the listener, too, for a moment.
    let mut closed = Reply::default();
    wait_until("nobody listens any more", || {
        let path = format!("/dial?port={port}");
        closed = agent.host().request("GET", &path, &upgrade, b"");
        closed.status != 101
    });
    assert_eq!((closed.status, &closed.json()["code"]), (502, &json!(502)));
    assert_eq!(
        agent
            .host()
            .request("GET", "/dial?port=0", &upgrade, b"")
            .status,
        400
    );
    assert_eq!(
        agent
            .host()
            .request("GET", "/dial?port=80", &[], b"")
            .status,
        426
    );
}

#[test]
fn browsers_of_any_origin_are_let_in() {
    let agent = Agent::start_with(&["--token", "secret"]);
    let reply = agent
        .tcp()
        .request("OPTIONS", "/files", &[("origin", "http://x")], b"");
    assert_eq!(reply.status, 204);
    assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
    let reply = agent.tcp().request("GET", "/envs", &[], b"");
    assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
}

#[test]
fn metrics_make_sense() {
    let agent = Agent::start();
    let metrics = agent.host().request("GET", "/metrics", &[], b"").json();
    assert!(metrics["cpu_count"].as_u64().unwrap() >= 1);
    assert!(metrics["mem_total"].as_u64().unwrap() > metrics["mem_used"].as_u64().unwrap());
    assert!(metrics["disk_total"].as_u64().unwrap() > 0);
}

#[test]
fn a_connection_is_used_for_many_requests() {
    let agent = Agent::start();
    let mut connection = agent.tcp();
    for _ in 0..100 {
        assert_eq!(connection.request("GET", "/envs", &[], b"").status, 200);
    }
    let request = json!({"process": {"cmd": "echo", "args": ["x"]}});
    for _ in 0..3 {
        let headers = [("content-type", "application/connect+json")];
        let body = crate::common::enveloped(&request);
        let reply = connection.request("POST", "/process.Process/Start", &headers, &body);
        assert_eq!(reply.status, 200);
        let mut decoder = sandyard_wire::Decoder::default();
        decoder.push(&reply.body);
        while decoder.next_frame().unwrap().is_some() {}
        assert!(decoder.is_ended());
    }
}
