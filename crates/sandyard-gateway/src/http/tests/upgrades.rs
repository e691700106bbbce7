//! Connections that stop speaking HTTP.

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::env::{NAME, PLACEHOLDER, SECRET, TestEnv, get, host};
use super::site::{Site, SiteBody, full};

/// RequestChanges to whatever protocol is asked for, and then sends back what it gets, in capital letters.
async fn change(mut request: Request<Incoming>) -> Response<SiteBody> {
    let Some(upgrade_request) = request.headers().get("upgrade").cloned() else {
        return Response::new(full("plain"));
    };
    tokio::spawn(async move {
        let upgraded = hyper::upgrade::on(&mut request).await.unwrap();
        let mut upgraded = TokioIo::new(upgraded);
        upgraded.write_all(b"HELLO ").await.unwrap();
        let mut text = Vec::new();
        upgraded.read_to_end(&mut text).await.unwrap();
        upgraded
            .write_all(&text.to_ascii_uppercase())
            .await
            .unwrap();
        upgraded.shutdown().await.unwrap();
    });
    let response = Response::builder()
        .status(101)
        .header("upgrade", upgrade_request);
    let response = response.header("sec-websocket-protocol", SECRET);
    response
        .header("connection", "upgrade")
        .body(full(""))
        .unwrap()
}

fn upgrade_request(protocol: &str) -> Request<SiteBody> {
    get(
        "/",
        &[
            ("connection", "Upgrade"),
            ("upgrade", protocol),
            ("authorization", PLACEHOLDER),
        ],
    )
}

#[tokio::test]
async fn a_web_socket_is_carried_in_both_directions() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["http/1.1"])), change).await;
    let (mut program, carried) = env.program(site.address, false).await;
    let mut answer = program.send(upgrade_request("websocket")).await.unwrap();
    assert_eq!(answer.status(), 101);
    assert_eq!(answer.headers()["upgrade"], "websocket");
    assert_eq!(answer.headers()["sec-websocket-protocol"], PLACEHOLDER);
    assert_eq!(site.last().header("authorization"), SECRET);
    let upgraded = hyper::upgrade::on(&mut answer).await.unwrap();
    let mut upgraded = TokioIo::new(upgraded);
    let mut greeting = [0; 6];
    upgraded.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"HELLO ");
    upgraded.write_all(b"from the program").await.unwrap();
    upgraded.shutdown().await.unwrap();
    let mut rest = String::new();
    upgraded.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "FROM THE PROGRAM");
    carried.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_refused_upgrade_leaves_the_connection_as_it_is() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["http/1.1"])), |_| async {
        Response::new(full("no"))
    })
    .await;
    let (mut program, _) = env.program(site.address, false).await;
    for _ in 0..3 {
        assert_eq!(
            program
                .send(upgrade_request("websocket"))
                .await
                .unwrap()
                .status(),
            200
        );
        assert_eq!(program.get("/", &[]).await.status(), 200);
    }
}

#[tokio::test]
async fn no_upgrade_leads_to_uninspected_http() {
    let env = TestEnv::new();
    let site = Site::start(None, change).await;
    for protocol in ["h2c", "websocket, H2C", "TLS/1.0", "HTTP/2.0"] {
        let (stream, _) = env.open(site.address, host(), false).await;
        let mut program = super::env::Sender::new(stream, false).await;
        let mut request = upgrade_request(protocol);
        request.headers_mut().insert(
            "http2-settings",
            "AAMAAABkAARAAAAAAAIAAAAA".parse().unwrap(),
        );
        assert_eq!(
            program.send(request).await.unwrap().status(),
            200,
            "{protocol}"
        );
        let seen = site.last();
        assert!(
            !seen.headers.contains_key("upgrade") && !seen.headers.contains_key("http2-settings")
        );
    }
}

#[tokio::test]
async fn an_unrequested_protocol_is_refused() {
    let env = TestEnv::new();
    let site = Site::raw(|mut stream| async move {
        let _ = stream.read(&mut [0; 4096]).await.unwrap();
        let answer =
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        let _ = stream.read(&mut [0; 16]).await;
    })
    .await;
    let (stream, _) = env.open(site.address, host(), false).await;
    let mut program = super::env::Sender::new(stream, false).await;
    assert_eq!(program.get("/", &[]).await.status(), 502);
}
