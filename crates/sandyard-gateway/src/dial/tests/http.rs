//! Through a proxy that speaks HTTP.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::super::Dialer;
use super::{
    PASSWORD, deserted, dialer_by, expect_echo, listen, start_echo, start_saying, to_address,
    to_name,
};
use crate::names::testing::{NameServer, names_without_servers};

/// A small proxy: it connects to one place whatever is asked for, and keeps the requests.
struct HttpProxy {
    at: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl HttpProxy {
    async fn start(to: SocketAddr, authorization: Option<&'static str>) -> Self {
        let (listener, at) = listen().await;
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let recorded = requests.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, to, authorization, recorded.clone()));
            }
        });
        Self { at, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    to: SocketAddr,
    authorization: Option<&str>,
    requests: Arc<Mutex<Vec<String>>>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    requests.lock().unwrap().push(head.clone());
    if authorization.is_some_and(|expected| !head.contains(expected)) {
        let answer = "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";
        stream.write_all(answer.as_bytes()).await.unwrap();
        return;
    }
    let mut onward = TcpStream::connect(to).await.unwrap();
    // The greeting of the server goes out with the answer in one piece.
    let mut greeting = vec![0; 6];
    onward.read_exact(&mut greeting).await.unwrap();
    let mut answer =
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n"
            .to_vec();
    answer.extend(greeting);
    stream.write_all(&answer).await.unwrap();
    let _ = tokio::io::copy_bidirectional(&mut stream, &mut onward).await;
}

#[tokio::test]
async fn the_name_is_asked_for_and_no_byte_after_the_answer_is_lost() {
    let proxy = HttpProxy::start(start_echo().await, None).await;
    let dialer = dialer_by(&format!("http://{}", proxy.at));
    assert!(dialer.uses_resolving_proxy("example.com", 443));
    for addresses in [&["192.0.2.1"][..], &[]] {
        let mut dialled = dialer
            .dial(&to_name("example.com", addresses, 443), false)
            .await
            .unwrap();
        assert!(dialled.address.is_none() && dialled.whole_urls.is_none());
        expect_echo(&mut dialled.stream).await;
    }
    let expected = "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n";
    assert_eq!(proxy.requests(), [expected, expected]);
}

#[tokio::test]
async fn an_address_is_asked_for_where_there_is_no_name() {
    let proxy = HttpProxy::start(start_echo().await, None).await;
    let dialer = dialer_by(&proxy.at.to_string());
    let to = to_address("[2001:db8::1]:22".parse().unwrap());
    let dialled = dialer.dial(&to, false).await.unwrap();
    assert_eq!(dialled.address, Some(to.addresses[0]));
    assert!(proxy.requests()[0].starts_with("CONNECT [2001:db8::1]:22 HTTP/1.1\r\n"));
}

#[tokio::test]
async fn credentials_are_sent_and_never_shown() {
    // printf 'me:hunter2' | base64
    let expected_header = "Proxy-Authorization: Basic bWU6aHVudGVyMg==\r\n";
    let proxy = HttpProxy::start(start_echo().await, Some(expected_header)).await;
    let at = proxy.at;
    let to = to_name("example.com", &[], 443);

    let dialer = dialer_by(&format!("http://me:{PASSWORD}@{at}"));
    dialer.dial(&to, false).await.unwrap();
    assert!(!format!("{dialer:?}").contains(PASSWORD));

    let err = dialer_by(&format!("http://{at}"))
        .dial(&to, false)
        .await
        .unwrap_err();
    assert!(
        err.to_string()
            .ends_with("it requires a user name and a password (status 407)"),
        "{err}"
    );
    let wrong = dialer_by(&format!("http://you:{PASSWORD}@{at}"));
    let err = wrong.dial(&to, false).await.unwrap_err();
    assert!(err.to_string().contains("rejects"), "{err}");
    assert!(!err.to_string().contains(PASSWORD));
}

#[tokio::test]
async fn plain_http_gets_the_bare_connection() {
    let proxy = HttpProxy::start(start_echo().await, None).await;
    let dialer = dialer_by(&format!("http://me:{PASSWORD}@{}", proxy.at));
    let dialled = dialer
        .dial(&to_name("example.com", &["192.0.2.1"], 8080), true)
        .await
        .unwrap();
    assert_eq!(dialled.stream.peer_addr().unwrap(), proxy.at);
    assert!(dialled.address.is_none() && !format!("{dialled:?}").contains("bWU6"));
    let authorization = dialled.whole_urls.unwrap().authorization.unwrap();
    assert_eq!(authorization, "Basic bWU6aHVudGVyMg==");
    assert_eq!(proxy.requests(), [""; 0]);
}

#[tokio::test]
async fn refusal_by_the_proxy_is_reported() {
    let long = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(17_000));
    let many = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(17_000));
    let endless = "HTTP/1.1 100 Continue\r\n\r\n".repeat(1000);
    for (reply_bytes, expected) in [
        (
            "HTTP/1.1 403 Forbidden by rule\r\n\r\n",
            "it answers `403 Forbidden by rule`",
        ),
        ("HTTP/1.1 503\r\n\r\n", "it answers `503`"),
        ("SSH-2.0-OpenSSH\r\n\r\n", "its answer is not HTTP"),
        ("\r\n\r\n", "its answer is not HTTP"),
        ("", "connection closed"),
        ("HTTP/1.1 200 OK\r\n", "connection closed"),
        (&long, "its answer is too long"),
        (&many, "its answer is too long"),
        (&endless, "its answer is too long"),
    ] {
        let at = start_saying(reply_bytes, false).await;
        let dialer = dialer_by(&format!("http://{at}"));
        let err = dialer
            .dial(&to_name("example.com", &[], 443), false)
            .await
            .unwrap_err();
        assert_eq!(err.to_string(), format!("proxy http://{at}: {expected}"));
    }
}

#[tokio::test]
async fn a_silent_or_missing_proxy_times_out() {
    let to = to_name("example.com", &[], 443);
    let at = start_saying("HTTP/1.1 ", true).await;
    let dialer = Dialer {
        proxy_timeout: Duration::from_millis(50),
        ..dialer_by(&format!("http://{at}"))
    };
    let err = dialer.dial(&to, false).await.unwrap_err();
    assert!(err.to_string().contains("not connected after"), "{err}");

    let (_held, at) = deserted();
    let err = dialer_by(&format!("http://{at}"))
        .dial(&to, false)
        .await
        .unwrap_err();
    assert_eq!(
        err.to_string(),
        format!("proxy http://{at}: {at}: connection refused")
    );
}

#[tokio::test]
async fn a_name_cannot_break_out_of_the_request() {
    let proxy = HttpProxy::start(start_echo().await, None).await;
    let dialer = dialer_by(&format!("http://{}", proxy.at));
    for name in [
        "example.com:443 HTTP/1.1\r\nX: y",
        "exa mple.com",
        "",
        "192.0.2.1",
    ] {
        let to = to_name(name, &["192.0.2.1"], 443);
        let err = dialer.dial(&to, false).await.unwrap_err();
        assert_eq!(err.to_string(), "the name is not a valid host name");
    }
    assert_eq!(proxy.requests(), [""; 0]);
}

#[tokio::test]
async fn a_proxy_may_have_a_name() {
    let proxy = HttpProxy::start(start_echo().await, None).await;
    let records = vec![crate::names::testing::address_record(
        "proxy.corp.example.",
        proxy.at.ip(),
    )];
    let server = NameServer::with_records(records).await;
    let url = format!("http://proxy.corp.example:{}", proxy.at.port());
    let to = to_name("example.com", &[], 443);
    let dialer = Dialer::new(Some(&url), |_| None, server.names()).unwrap();
    let mut dialled = dialer.dial(&to, false).await.unwrap();
    expect_echo(&mut dialled.stream).await;

    let dialer = Dialer::new(Some(&url), |_| None, names_without_servers()).unwrap();
    let err = dialer.dial(&to, false).await.unwrap_err();
    assert_eq!(
        err.to_string(),
        format!("proxy {url}: no DNS server answered")
    );
}

#[tokio::test]
async fn what_the_environment_excepts_is_dialled_directly() {
    let echo = start_echo().await;
    let proxy = HttpProxy::start(echo, None).await;
    let environment = |name: &str| match name {
        "HTTPS_PROXY" => Some(format!("http://{}", proxy.at)),
        "NO_PROXY" => Some(".corp.example".to_owned()),
        _ => None,
    };
    let dialer = Dialer::new(None, environment, names_without_servers()).unwrap();
    for (name, port, expected) in [
        ("example.com", 443, true),
        ("example.com", 5432, true),
        ("example.com", 80, false),
        ("git.corp.example", 443, false),
        ("localhost", 443, false),
        ("192.0.2.1", 443, true),
        ("127.0.0.1", 443, false),
    ] {
        assert_eq!(
            dialer.uses_resolving_proxy(name, port),
            expected,
            "{name}:{port}"
        );
    }
    let to = to_name("git.corp.example", &["127.0.0.1"], echo.port());
    let dialled = dialer.dial(&to, false).await.unwrap();
    assert_eq!(dialled.stream.peer_addr().unwrap(), echo);
    let to = to_name("example.com", &["127.0.0.1"], echo.port());
    // There is no proxy for plain HTTP.
    let dialled = dialer.dial(&to, true).await.unwrap();
    assert_eq!(dialled.stream.peer_addr().unwrap(), echo);
    let dialled = dialer.dial(&to, false).await.unwrap();
    assert_eq!(dialled.stream.peer_addr().unwrap(), proxy.at);
}
