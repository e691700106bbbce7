//! Requests without TLS, and by way of a proxy.

use sandyard_core::network::Denial;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::env::{NAME, Sender, TestEnv, collect_body, get, grant, host, text};
use super::site::{Site, echo};
use crate::dial::WholeUrls;
use crate::http::{Host, HttpFailure};

fn plain_host() -> Host {
    Host { port: 80, ..host() }
}

#[tokio::test]
async fn requests_are_carried_as_they_are() {
    let env = TestEnv::new();
    env.set(grant(&[], &[]));
    let answer =
        b"HTTP/1.1 299 Odd Reason\r\nX-Case: Kept\r\nServer: none\r\nContent-Length: 2\r\n\r\nok";
    let head = format!(
        "GET /a?b HTTP/1.1\r\nHost: {NAME}\r\nUser-AGENT: me\r\nx-Twice: 1\r\nx-Twice: 2\r\nAccept: */*\r\n\r\n"
    );
    let expected = head.clone();
    let site = Site::raw(move |mut stream| {
        let expected = expected.clone();
        async move {
            let mut head = vec![0; expected.len()];
            stream.read_exact(&mut head).await.unwrap();
            assert_eq!(String::from_utf8(head).unwrap(), expected);
            stream.write_all(answer).await.unwrap();
            // An end right behind the answer would be announced in it.
            assert_eq!(stream.read(&mut [0; 16]).await.unwrap_or(0), 0);
        }
    })
    .await;
    let (mut stream, carried) = env.open(site.address, plain_host(), false).await;
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut got = vec![0; answer.len()];
    stream.read_exact(&mut got).await.unwrap();
    assert_eq!(
        String::from_utf8_lossy(&got),
        String::from_utf8_lossy(answer)
    );
    drop(stream);
    carried.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_program_may_stop_writing_and_wait_for_the_answer() {
    let env = TestEnv::new();
    let site = Site::start(None, echo).await;
    let (mut stream, _) = env.open(site.address, plain_host(), false).await;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut got = String::new();
    stream.read_to_string(&mut got).await.unwrap();
    assert!(got.starts_with("HTTP/1.0 200 OK\r\n"), "{got}");
}

#[tokio::test]
async fn the_second_request_must_be_for_the_same_host() {
    let env = TestEnv::new();
    let site = Site::start(None, echo).await;
    let (stream, carried) = env.open(site.address, plain_host(), false).await;
    let mut program = Sender::new(stream, false).await;
    assert_eq!(
        program
            .get("/", &[("host", "api.example.com:80")])
            .await
            .status(),
        200
    );
    assert_eq!(
        program
            .get("/", &[("host", "api.example.com:8080")])
            .await
            .status(),
        421
    );
    let failure = carried.await.unwrap().unwrap_err();
    assert!(
        matches!(failure, HttpFailure::Denied(Denial::NameMismatch { .. })),
        "{failure:?}"
    );
    assert_eq!(site.seen().len(), 1);
}

#[tokio::test]
async fn a_proxy_gets_whole_urls_and_its_own_authorization() {
    let env = TestEnv::new();
    env.set(grant(&[], &[("http://api.example.com", "x-team", "one")]));
    let proxy = Site::start(None, echo).await;
    let authorization = Some("Basic b3BlcmF0b3I6cHc=".to_owned());
    for port in [80, 8080] {
        let whole_urls = WholeUrls {
            authorization: authorization.clone(),
        };
        let host = Host { port, ..host() };
        let (stream, _) = env
            .open_by(proxy.address, host, false, Some(whole_urls))
            .await;
        let mut program = Sender::new(stream, false).await;
        let host_header = if port == 80 {
            NAME.to_owned()
        } else {
            format!("{NAME}:{port}")
        };
        let headers = [
            ("host", host_header.as_str()),
            ("proxy-authorization", "mine"),
            ("proxy-connection", "x"),
        ];
        let answer = program.get("/path?q", &headers).await;
        assert!(
            text(&answer).starts_with(&format!("GET http://{host_header}/path?q\n")),
            "{}",
            text(&answer)
        );
        let seen = proxy.last();
        assert_eq!(seen.header("proxy-authorization"), "Basic b3BlcmF0b3I6cHc=");
        assert_eq!(
            seen.headers.get_all("proxy-authorization").iter().count(),
            1
        );
        assert!(!seen.headers.contains_key("proxy-connection"));
        assert_eq!(seen.header("x-team"), "one");
    }
}

#[tokio::test]
async fn a_program_that_uses_the_gateway_as_a_proxy_must_reconnect() {
    let env = TestEnv::new();
    let site = Site::start(None, echo).await;
    let (stream, _) = env.open(site.address, plain_host(), false).await;
    let mut program = Sender::new(stream, false).await;
    let request = get(
        &format!("http://{NAME}/path"),
        &[("proxy-connection", "keep-alive")],
    );
    let answer = collect_body(program.send(request).await.unwrap()).await;
    assert_eq!(answer.headers()["connection"], "close");
    assert_eq!(site.last().uri, "/path");
    assert!(program.send(get("/", &[])).await.is_err());
}

#[tokio::test]
async fn http_two_without_tls_is_carried_as_such() {
    let env = TestEnv::new();
    let site = Site::plain_two().await;
    let (stream, carried) = env.open(site.address, plain_host(), false).await;
    let mut program = Sender::new(stream, true).await;
    let answer = collect_body(
        program
            .send(get(&format!("http://{NAME}/"), &[]))
            .await
            .unwrap(),
    )
    .await;
    assert_eq!(answer.status(), 200);
    let answer = collect_body(
        program
            .send(get("http://evil.example/", &[]))
            .await
            .unwrap(),
    )
    .await;
    assert_eq!(answer.status(), 421);
    assert!(carried.await.unwrap().is_err());
    assert_eq!(site.seen().len(), 1);
}
