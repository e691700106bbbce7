//! Agents and ports at E2B: its proxy, by name over TLS or by headers.

use sandyard_provider::ProviderErrorKind::Unavailable;
use sandyard_provider::prelude::*;
use sandyard_providers::{E2b, E2bConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::agent_client;
use crate::e2b::{sh, spec};
use crate::e2b_fake_api::FakeApi;

#[tokio::test]
async fn a_domain_over_tls_is_reached_by_its_names_if_its_certificate_is_trusted() {
    let counterpart = FakeApi::start(&["--tls-self-signed", "--domain", "sbx.test"]).await;
    let config = counterpart.domain_config("sbx.test");
    let strict = E2bConfig {
        trusted_ca: None,
        ..config.clone()
    };
    let strict = E2b::connect(strict).await.expect("it may answer later");
    assert_eq!(strict.list().await.unwrap_err().kind, Unavailable);
    let provider = E2b::connect(config).await.expect("connect");
    // Another port has another address.
    let location = format!("e2b:api.sbx.test:{}", counterpart.port);
    assert_eq!(provider.info().location, location);
    let id = provider
        .create(&spec(&provider, "one"))
        .await
        .expect("create")
        .id;
    assert_eq!(sh(&provider, &id, "echo $((6 * 7))").await, "42");
    serve_ports(&provider, &id).await;
    assert!(
        get(&provider, &id, 8123, true)
            .await
            .contains("hello from inside")
    );
    provider.delete(&id).await.expect("delete");
    assert_eq!(provider.list().await.expect("list"), []);
}

/// Runs two servers in a sandbox: one for files, and one for an upgraded protocol.
async fn serve_ports(provider: &E2b, id: &str) {
    let line = r#"
mkdir -p /tmp/www && echo hello from inside > /tmp/www/index.html
cat > /tmp/echo.py <<'PY'
import socket
server = socket.create_server(("127.0.0.1", 8124))
while True:
    client, _ = server.accept()
    head = b""
    while not head.endswith(b"\r\n\r\n") and (byte := client.recv(1)):
        head += byte
    if not head:
        continue
    client.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
    while data := client.recv(1000):
        client.sendall(data.upper())
    client.close()
PY
setsid python3 /tmp/echo.py >/dev/null 2>&1 &
setsid python3 -m http.server --directory /tmp/www --bind 127.0.0.1 8123 >/dev/null 2>&1 &
for port in 8123 8124; do
    until python3 -c "import socket; socket.create_connection(('127.0.0.1', $port))" 2>/dev/null; do sleep 0.05; done
done
"#;
    sh(provider, id, line).await;
}

/// Requests the first page of a port, with or without the required headers.
async fn get(provider: &E2b, id: &str, port: u16, has_headers: bool) -> String {
    let mut port = dial(provider, id, port).await;
    let mut head = "GET / HTTP/1.1\r\nconnection: close\r\n".to_owned();
    for (name, value) in &port.headers {
        let is_token = name.as_str().contains("token");
        if has_headers || !is_token {
            head.push_str(&format!("{name}: {}\r\n", value.to_str().expect("a text")));
        }
    }
    let stream = &mut port.stream;
    stream
        .write_all(format!("{head}\r\n").as_bytes())
        .await
        .expect("ask");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

async fn dial(provider: &E2b, id: &str, port: u16) -> sandyard_agent_client::PortStream {
    let agent = agent_client::agent(provider, id).await;
    assert!(!agent.endpoint().is_host_connection());
    agent.dial(port).await.expect("a port")
}

#[tokio::test]
async fn ports_are_reached_by_the_proxy_and_closed_to_others() {
    let counterpart = FakeApi::start(&[]).await;
    let id = {
        let provider = counterpart.provider("ours").await;
        let made = provider
            .create(&spec(&provider, "one"))
            .await
            .expect("create");
        serve_ports(&provider, &made.id).await;
        made.id
    };
    // A server that just started has no tokens, and requests them.
    let provider = counterpart.provider("ours").await;
    assert!(
        get(&provider, &id, 8123, true)
            .await
            .contains("hello from inside")
    );
    let refused = get(&provider, &id, 8123, false).await;
    assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
    let closed = get(&provider, &id, 8125, true).await;
    assert!(closed.starts_with("HTTP/1.1 502 "), "{closed}");
    let mut port = dial(&provider, &id, 8124).await;
    let mut head =
        "GET /socket HTTP/1.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n".to_owned();
    for (name, value) in &port.headers {
        head.push_str(&format!("{name}: {}\r\n", value.to_str().expect("a text")));
    }
    let stream = &mut port.stream;
    stream
        .write_all(format!("{head}\r\n").as_bytes())
        .await
        .expect("ask");
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.expect("an answer"));
    }
    assert!(answer.starts_with(b"HTTP/1.1 101 "), "{answer:?}");
    stream.write_all(b"echo").await.expect("say");
    let mut echo = [0; 4];
    stream.read_exact(&mut echo).await.expect("an echo");
    assert_eq!(&echo, b"ECHO");
    provider.delete(&id).await.expect("delete");
    counterpart.finish().await;
}
