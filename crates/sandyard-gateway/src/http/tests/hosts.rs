//! Requests for other hosts, and for none.

use http::Request;
use sandyard_core::network::Denial;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::site::{Site, echo, full};
use super::world::{Carried, NAME, PLACEHOLDER, World, get, host, text, whole};
use crate::http::HttpFailure;

async fn said(carried: Carried) -> String {
    match carried.await.unwrap() {
        Err(HttpFailure::Denied(Denial::NameMismatch { name, said })) => {
            assert_eq!(name, NAME);
            said
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_second_request_of_a_connection_must_be_for_the_same_host() {
    let world = World::new();
    let site = Site::start(Some(world.site_tls(NAME, &["h2", "http/1.1"])), echo).await;
    for is_two in [false, true] {
        let (mut program, carried) = world.program(site.address, is_two).await;
        assert_eq!(program.get("/", &[]).await.status(), 200);
        let count = site.seen().len();
        let request = match is_two {
            true => get("https://evil.example/", &[("x-key", PLACEHOLDER)]),
            false => get("/", &[("host", "evil.example"), ("x-key", PLACEHOLDER)]),
        };
        let answer = whole(program.send(request).await.unwrap()).await;
        assert_eq!(answer.status(), 421);
        assert!(text(&answer).starts_with("sandyard gateway: connected to `api.example.com`"));
        assert_eq!(said(carried).await, "evil.example");
        assert_eq!(site.seen().len(), count);
        assert!(program.send(get("/", &[])).await.is_err());
    }
}

#[tokio::test]
async fn a_host_header_that_differs_from_the_url_is_found() {
    let world = World::new();
    let site = Site::start(Some(world.site_tls(NAME, &["h2", "http/1.1"])), echo).await;
    for is_two in [false, true] {
        let (mut program, carried) = world.program(site.address, is_two).await;
        let request = get(&format!("https://{NAME}/"), &[("host", "evil.example")]);
        assert_eq!(program.send(request).await.unwrap().status(), 421);
        assert_eq!(said(carried).await, "evil.example");
        let (mut program, carried) = world.program(site.address, is_two).await;
        let request = get("https://evil.example/", &[("host", NAME)]);
        assert_eq!(program.send(request).await.unwrap().status(), 421);
        assert_eq!(said(carried).await, "evil.example");
    }
    assert!(site.seen().is_empty());
}

#[tokio::test]
async fn the_same_host_in_other_letters_with_port_or_dot_is_the_same() {
    let world = World::new();
    let site = Site::start(Some(world.site_tls(NAME, &["http/1.1"])), echo).await;
    let (mut program, _) = world.program(site.address, false).await;
    for said in ["API.example.COM", "api.example.com:443", "api.example.com."] {
        assert_eq!(
            program.get("/", &[("host", said)]).await.status(),
            200,
            "{said}"
        );
        assert_eq!(site.last().header("host"), said);
    }
    // A whole URL for the same host is read, and sent on as servers like it.
    let request = get(&format!("https://{NAME}/path"), &[]);
    assert_eq!(program.send(request).await.unwrap().status(), 200);
    assert_eq!(site.last().uri, "/path");
}

#[tokio::test]
async fn connect_does_not_work() {
    let world = World::new();
    let site = Site::start(Some(world.site_tls(NAME, &["h2", "http/1.1"])), echo).await;
    for (is_two, target) in [(false, "evil.example:443"), (false, NAME), (true, NAME)] {
        let (mut program, _) = world.program(site.address, is_two).await;
        let request = Request::connect(target).body(full("")).unwrap();
        let answer = program.send(request).await.unwrap();
        assert_eq!(answer.status(), 405, "{target}");
    }
    assert!(site.seen().is_empty());
}

/// Sends bytes over TLS and gives all that comes back.
async fn raw(world: &World, site: &Site, request: &[u8]) -> (String, Result<(), HttpFailure>) {
    let (stream, carried) = world.open(site.address, host(), true).await;
    let mut stream = world.hello(stream, NAME, &["http/1.1"]).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    // An end without a word of TLS is an end, too.
    let _ = stream.read_to_end(&mut answer).await;
    (String::from_utf8(answer).unwrap(), carried.await.unwrap())
}

#[tokio::test]
async fn two_host_headers_or_none_are_a_bad_request() {
    let world = World::new();
    let site = Site::start(Some(world.site_tls(NAME, &["http/1.1"])), echo).await;
    let twice = format!("GET / HTTP/1.1\r\nHost: {NAME}\r\nHost: {NAME}\r\n\r\n");
    for request in [twice.as_str(), "GET / HTTP/1.1\r\nAccept: */*\r\n\r\n"] {
        let (answer, carried) = raw(&world, &site, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(carried.is_ok(), "{carried:?}");
    }
    assert!(site.seen().is_empty());
}

#[tokio::test]
async fn an_old_request_without_a_host_gets_the_one_it_is_for() {
    let world = World::new();
    let site = Site::start(Some(world.site_tls(NAME, &["http/1.1"])), echo).await;
    let (answer, _) = raw(&world, &site, b"GET / HTTP/1.0\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.0 200 "), "{answer}");
    assert_eq!(site.last().header("host"), NAME);
}

#[tokio::test]
async fn heads_have_a_limit() {
    let world = World::new();
    let site = Site::start(Some(world.site_tls(NAME, &["h2", "http/1.1"])), echo).await;
    let many = format!(
        "GET / HTTP/1.1\r\nHost: {NAME}\r\n{}\r\n",
        "a: b\r\n".repeat(200)
    );
    let long = format!(
        "GET / HTTP/1.1\r\nHost: {NAME}\r\na: {}\r\n\r\n",
        "b".repeat(129 * 1024)
    );
    for request in [many, long] {
        let (answer, _) = raw(&world, &site, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    }
    let (mut program, _) = world.program(site.address, true).await;
    let names: Vec<_> = (0..201).map(|number| format!("x-{number}")).collect();
    let headers: Vec<_> = names.iter().map(|name| (name.as_str(), "1")).collect();
    assert_eq!(program.get("/", &headers).await.status(), 431);
    assert!(site.seen().is_empty());
    let most = format!(
        "GET / HTTP/1.1\r\nHost: {NAME}\r\na: {}\r\nConnection: close\r\n\r\n",
        "b".repeat(100 * 1024)
    );
    let (answer, _) = raw(&world, &site, most.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 "), "{}", answer.len());
    assert_eq!(site.seen().len(), 1);
}

#[tokio::test]
async fn what_is_no_http_is_answered_as_such() {
    let world = World::new();
    let site = Site::start(Some(world.site_tls(NAME, &["http/1.1"])), echo).await;
    let (answer, carried) = raw(&world, &site, b"* OK IMAP4 hello\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    let failure = carried.unwrap_err().to_string();
    assert!(failure.contains("no HTTP"), "{failure}");
}
