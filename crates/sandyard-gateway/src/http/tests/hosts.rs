//! Requests for other hosts, and for none.

use std::collections::BTreeMap;

use http::Request;
use sandyard_core::network::Denial;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use super::env::{LinkStream, NAME, PLACEHOLDER, TestEnv, collect_body, get, host, text};
use super::site::{Site, echo, full};
use crate::http::HttpFailure;
use crate::http::plain::PREFACE;

async fn denied_name(carried: LinkStream) -> String {
    match carried.await.unwrap() {
        Err(HttpFailure::Denied(Denial::NameMismatch { name, requested })) => {
            assert_eq!(name, NAME);
            requested
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_second_request_of_a_connection_must_be_for_the_same_host() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["h2", "http/1.1"])), echo).await;
    for is_two in [false, true] {
        let (mut program, carried) = env.program(site.address, is_two).await;
        assert_eq!(program.get("/", &[]).await.status(), 200);
        let count = site.seen().len();
        let request = match is_two {
            true => get("https://evil.example/", &[("x-key", PLACEHOLDER)]),
            false => get("/", &[("host", "evil.example"), ("x-key", PLACEHOLDER)]),
        };
        let answer = collect_body(program.send(request).await.unwrap()).await;
        assert_eq!(answer.status(), 421);
        assert!(text(&answer).starts_with("sandyard gateway: connected to `api.example.com`"));
        assert_eq!(denied_name(carried).await, "evil.example");
        assert_eq!(site.seen().len(), count);
        assert!(program.send(get("/", &[])).await.is_err());
    }
}

#[tokio::test]
async fn a_host_header_that_differs_from_the_url_is_found() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["h2", "http/1.1"])), echo).await;
    for is_two in [false, true] {
        let (mut program, carried) = env.program(site.address, is_two).await;
        let request = get(&format!("https://{NAME}/"), &[("host", "evil.example")]);
        assert_eq!(program.send(request).await.unwrap().status(), 421);
        assert_eq!(denied_name(carried).await, "evil.example");
        let (mut program, carried) = env.program(site.address, is_two).await;
        let request = get("https://evil.example/", &[("host", NAME)]);
        assert_eq!(program.send(request).await.unwrap().status(), 421);
        assert_eq!(denied_name(carried).await, "evil.example");
    }
    assert!(site.seen().is_empty());
}

#[tokio::test]
async fn the_same_host_in_other_letters_with_port_or_dot_is_the_same() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["http/1.1"])), echo).await;
    let (mut program, _) = env.program(site.address, false).await;
    for host_header in ["API.example.COM", "api.example.com:443", "api.example.com."] {
        assert_eq!(
            program.get("/", &[("host", host_header)]).await.status(),
            200,
            "{host_header}"
        );
        assert_eq!(site.last().header("host"), host_header);
    }
    // A whole URL for the same host is read, and sent on as servers like it.
    let request = get(&format!("https://{NAME}/path"), &[]);
    assert_eq!(program.send(request).await.unwrap().status(), 200);
    assert_eq!(site.last().uri, "/path");
}

#[tokio::test]
async fn connect_does_not_work() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["h2", "http/1.1"])), echo).await;
    for (is_two, target) in [(false, "evil.example:443"), (false, NAME), (true, NAME)] {
        let (mut program, _) = env.program(site.address, is_two).await;
        let request = Request::connect(target).body(full("")).unwrap();
        let answer = program.send(request).await.unwrap();
        assert_eq!(answer.status(), 405, "{target}");
    }
    assert!(site.seen().is_empty());
}

/// Sends bytes over TLS and gives all that comes back.
async fn raw(env: &TestEnv, site: &Site, request: &[u8]) -> (String, Result<(), HttpFailure>) {
    let (stream, carried) = env.open(site.address, host(), true).await;
    let mut stream = env.hello(stream, NAME, &["http/1.1"]).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    // An end without a word of TLS is an end, too.
    let _ = stream.read_to_end(&mut answer).await;
    (String::from_utf8(answer).unwrap(), carried.await.unwrap())
}

#[tokio::test]
async fn two_host_headers_or_none_are_a_bad_request() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["http/1.1"])), echo).await;
    let twice = format!("GET / HTTP/1.1\r\nHost: {NAME}\r\nHost: {NAME}\r\n\r\n");
    for request in [twice.as_str(), "GET / HTTP/1.1\r\nAccept: */*\r\n\r\n"] {
        let (answer, carried) = raw(&env, &site, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(carried.is_ok(), "{carried:?}");
    }
    assert!(site.seen().is_empty());
}

#[tokio::test]
async fn an_old_request_without_a_host_gets_the_one_it_is_for() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["http/1.1"])), echo).await;
    let (answer, _) = raw(&env, &site, b"GET / HTTP/1.0\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.0 200 "), "{answer}");
    assert_eq!(site.last().header("host"), NAME);
}

#[tokio::test]
async fn heads_have_a_limit() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["h2", "http/1.1"])), echo).await;
    let many = format!(
        "GET / HTTP/1.1\r\nHost: {NAME}\r\n{}\r\n",
        "a: b\r\n".repeat(200)
    );
    let long = format!(
        "GET / HTTP/1.1\r\nHost: {NAME}\r\na: {}\r\n\r\n",
        "b".repeat(65 * 1024)
    );
    for request in [many, long] {
        let (answer, _) = raw(&env, &site, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    }
    let (mut program, _) = env.program(site.address, true).await;
    let names: Vec<_> = (0..201).map(|number| format!("x-{number}")).collect();
    let headers: Vec<_> = names.iter().map(|name| (name.as_str(), "1")).collect();
    assert_eq!(program.get("/", &headers).await.status(), 431);
    let long = "b".repeat(33 * 1024);
    assert_eq!(program.get("/", &[("a", &long)]).await.status(), 431);
    assert!(site.seen().is_empty());
    let limit = format!(
        "GET / HTTP/1.1\r\nHost: {NAME}\r\na: {}\r\nConnection: close\r\n\r\n",
        "b".repeat(60 * 1024)
    );
    let (answer, _) = raw(&env, &site, limit.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 "), "{}", answer.len());
    assert_eq!(site.seen().len(), 1);
    let (mut program, _) = env.program(site.address, true).await;
    let mut request = get("/", &[("a", &"b".repeat(31 * 1024))]);
    *request.method_mut() = http::Method::HEAD;
    let _ = program.send(request).await;
    assert_eq!(site.seen().len(), 2);
}

#[tokio::test]
async fn answers_have_a_limit_for_their_heads() {
    let env = TestEnv::new();
    let tls = env.site_tls(NAME, &["h2", "http/1.1"]);
    let site = Site::start(Some(tls), |request| async move {
        let bytes: usize = request.uri().path()[1..].parse().unwrap();
        let response = http::Response::builder().header("a", "b".repeat(bytes));
        response.body(full("")).unwrap()
    })
    .await;
    for (is_two, good, bad) in [(false, 60, 65), (true, 31, 33)] {
        let (mut program, _) = env.program(site.address, is_two).await;
        let path = format!("/{}", good * 1024);
        assert_eq!(program.get(&path, &[]).await.status(), 200);
        let path = format!("/{}", bad * 1024);
        let answer = program.send(get(&path, &[])).await;
        match is_two {
            true => assert!(answer.is_err(), "{answer:?}"),
            false => assert_eq!(answer.unwrap().status(), 502),
        }
    }
}

/// Reads what one end of HTTP/2 says first: RFC 9113, 6.5. Each setting and its value.
async fn settings(stream: &mut (impl AsyncRead + Unpin)) -> BTreeMap<u16, u32> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(head[3], 4, "{head:?}");
    let mut settings = BTreeMap::new();
    for _ in 0..usize::from(head[2]) / 6 {
        let id = stream.read_u16().await.unwrap();
        settings.insert(id, stream.read_u32().await.unwrap());
    }
    settings
}

#[tokio::test]
async fn both_sides_get_the_flow_control_settings() {
    let env = TestEnv::new();
    let tls = env.site_tls(NAME, &["h2"]);
    let (reported, mut site_settings) = tokio::sync::mpsc::unbounded_channel();
    let site = Site::raw(move |stream| {
        let (tls, reported) = (tls.clone(), reported.clone());
        async move {
            let mut stream = tls.accept(stream).await.unwrap();
            let mut preface = [0; PREFACE.len()];
            stream.read_exact(&mut preface).await.unwrap();
            reported.send(settings(&mut stream).await).unwrap();
        }
    })
    .await;
    let (stream, _carried) = env.open(site.address, host(), true).await;
    let mut stream = env.hello(stream, NAME, &["h2"]).await.unwrap();
    stream.write_all(PREFACE).await.unwrap();
    stream
        .write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0])
        .await
        .unwrap();
    let program_settings = settings(&mut stream).await;
    for reported in [program_settings, site_settings.recv().await.unwrap()] {
        // Streams at once, the window of one, the length of a head.
        assert_eq!(
            (reported[&3], reported[&4], reported[&6]),
            (32, 262_144, 32_768),
            "{reported:?}"
        );
    }
}

#[tokio::test]
async fn invalid_http_is_answered_with_bad_request() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["http/1.1"])), echo).await;
    let (answer, carried) = raw(&env, &site, b"* OK IMAP4 hello\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    let failure = carried.unwrap_err().to_string();
    assert!(failure.contains("not valid HTTP"), "{failure}");
}
