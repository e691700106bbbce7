//! WebSockets and other protocols after a switch.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use sandyard_preview::PreviewForm::{Host, Path};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{accept_async, client_async};

use crate::support::*;

const SWITCH: &str = "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
const SWITCHED: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n";

#[tokio::test]
async fn a_websocket_echoes_in_both_forms() {
    for (form, path) in [(Host, ""), (Path, PREFIX)] {
        let (addr, program) = program(|stream| async move {
            let mut socket = accept_async(stream).await.unwrap();
            while let Some(Ok(message)) = socket.next().await {
                if message.is_text() || message.is_binary() {
                    socket.send(message).await.unwrap();
                }
            }
        })
        .await;
        let proxy = Proxy::start(addr, move || target(form)).await;
        let url = format!("ws://{}{path}/socket", proxy.addr);
        let (mut socket, _) = client_async(url, proxy.client().await).await.unwrap();
        for message in [
            Message::text("hello"),
            Message::binary(vec![7; 1 << 20]),
            Message::text(""),
        ] {
            socket.send(message.clone()).await.unwrap();
            assert_eq!(socket.next().await.unwrap().unwrap(), message);
        }
        assert_eq!(proxy.live(), 1, "it counts as activity");
        socket.close(None).await.unwrap();
        while let Some(Ok(_)) = socket.next().await {}
        drop(socket);
        program.await.unwrap();
        proxy.until_quiet().await;
    }
}

#[tokio::test]
async fn one_side_may_end_and_still_listen() {
    let (addr, program) = program(|mut stream| async move {
        let head = read_head(&mut stream).await;
        // Bytes of the new protocol right behind the answer must not be lost.
        let answer = [SWITCHED, b"early "].concat();
        stream.write_all(&answer).await.unwrap();
        let received = read_all(&mut stream).await;
        stream
            .write_all(received.to_uppercase().as_bytes())
            .await
            .unwrap();
        head
    })
    .await;
    let proxy = Proxy::start(addr, || target(Host)).await;
    let mut client = proxy.client().await;
    client.write_all(SWITCH.as_bytes()).await.unwrap();
    let answer = read_head(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    assert!(answer.contains("upgrade: echo"), "{answer}");
    client.write_all(b"hello").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(read_all(&mut client).await, "early HELLO");
    let head = program.await.unwrap();
    assert!(
        head.contains("Connection: upgrade\r\n") && head.contains("Upgrade: echo\r\n"),
        "{head}"
    );
    proxy.until_quiet().await;
}

#[tokio::test]
async fn a_program_that_ends_ends_the_client() {
    let (addr, _) = program(|mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(SWITCHED).await.unwrap();
        stream.write_all(b"bye").await.unwrap();
    })
    .await;
    let proxy = Proxy::start(addr, || target(Host)).await;
    let mut client = proxy.client().await;
    client.write_all(SWITCH.as_bytes()).await.unwrap();
    read_head(&mut client).await;
    assert_eq!(read_all(&mut client).await, "bye");
    drop(client);
    proxy.until_quiet().await;
}

#[tokio::test]
async fn a_program_that_never_ends_does_not_outlive_its_client_for_long() {
    let (addr, program) = program(|mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(SWITCHED).await.unwrap();
        assert_eq!(read_all(&mut stream).await, "");
        // Never ends its own side while the proxy holds the stream.
        std::future::pending::<()>().await;
    })
    .await;
    let hasty = || {
        let mut target = target(Host);
        target.limits.half_closed = Duration::from_millis(20);
        target
    };
    let proxy = Proxy::start(addr, hasty).await;
    let mut client = proxy.client().await;
    client.write_all(SWITCH.as_bytes()).await.unwrap();
    read_head(&mut client).await;
    drop(client);
    proxy.until_quiet().await;
    program.abort();
}

#[tokio::test]
async fn a_switch_may_be_declined() {
    let (addr, _) = answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno").await;
    let proxy = Proxy::start(addr, || target(Host)).await;
    let mut client = proxy.client().await;
    client.write_all(SWITCH.as_bytes()).await.unwrap();
    let answer = read_head(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let mut body = [0; 2];
    client.read_exact(&mut body).await.unwrap();
    assert_eq!(&body, b"no");
}

#[tokio::test]
async fn an_unrequested_protocol_switch_is_a_bad_response() {
    for request in [
        "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nConnection: close, upgrade, http2-settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n",
    ] {
        let (addr, head) = answering(SWITCHED).await;
        let proxy = Proxy::start(addr, || target(Host)).await;
        let answer = proxy.send(request).await;
        assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
        assert!(!head.await.unwrap().contains("Upgrade"));
        proxy.until_quiet().await;
    }
}

#[tokio::test]
async fn a_switch_through_a_proxy_carries_its_headers() {
    let (addr, program) = program(|mut stream| async move {
        let head = read_head(&mut stream).await;
        stream.write_all(SWITCHED).await.unwrap();
        let received = read_all(&mut stream).await;
        stream.write_all(received.as_bytes()).await.unwrap();
        head
    })
    .await;
    let (mut client, front) = tokio::io::duplex(1 << 10);
    tokio::spawn(serve(front, move |request| {
        sandyard_preview::forward(request, target(Host), move |_| async move {
            let mut dialled = connect(addr).await?;
            let host = http::HeaderValue::from_static("3000-abc.far");
            dialled.headers.insert(http::header::HOST, host);
            Ok(dialled)
        })
    }));
    client.write_all(SWITCH.as_bytes()).await.unwrap();
    let answer = read_head(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    client.write_all(b"echo").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(read_all(&mut client).await, "echo");
    let head = program.await.unwrap();
    assert!(head.contains("\r\nHost: 3000-abc.far\r\n"), "{head}");
    assert!(head.contains("\r\nUpgrade: echo\r\n"), "{head}");
}
