//! What leaves a container comes to the gateway.

use std::sync::Arc;

use sandyard_agent_client::{AgentStream, Closer};
use sandyard_wire::egress::{FromAgent, ToAgent, Via, decode, encode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::container::{Container, Image, sh};

async fn open_channel(container: &Container<'_>) -> AgentStream {
    let opened = container
        .endpoint()
        .open_egress(&Arc::new(Closer::new(1)))
        .await;
    opened.expect("a channel")
}

/// Hears of the next connection.
async fn next_open(gateway: &mut UnixStream) -> (String, u16, Via) {
    let mut received = Vec::new();
    loop {
        while let Some(message) = decode::<FromAgent>(&mut received).expect("a frame") {
            if let FromAgent::Open {
                host, port, via, ..
            } = message
            {
                return (host, port, via);
            }
        }
        // The descriptor is lost that way, and so the connection.
        assert_ne!(gateway.read_buf(&mut received).await.expect("a frame"), 0);
    }
}

#[tokio::test]
async fn everything_that_is_sent_elsewhere_comes_to_the_agent() {
    let image = Image::new();
    let mut container = image.start(&["--egress"]);
    let agent = container.agent().await;
    assert_eq!(
        image.read("etc/resolv.conf"),
        "nameserver 198.18.0.1\noptions edns0 timeout:10 attempts:3\n"
    );
    let mut gateway = open_channel(&container).await;
    gateway
        .write_all(&encode(&ToAgent::Lead).expect("a frame"))
        .await
        .expect("lead");
    let program = sh(
        &agent,
        None,
        "exec 3<>/dev/tcp/192.0.2.7/81; read -u 3; true",
    );
    let (_, opened) = tokio::join!(program, next_open(&mut gateway));
    assert_eq!(opened, ("192.0.2.7".to_owned(), 81, Via::Redirect));
}

#[tokio::test]
async fn without_the_right_to_redirect_there_is_a_proxy() {
    let image = Image::new();
    let without = ["setpriv", "--bounding-set=-net_admin,-net_raw"];
    let mut container = image.start_by(&without, &["--egress"]);
    let agent = container.agent().await;
    assert_eq!(
        image.read("etc/resolv.conf"),
        "nameserver 127.0.0.53\noptions edns0 timeout:10 attempts:3\n"
    );
    assert!(
        image.read("log").starts_with("sandyard: no redirect:"),
        "{}",
        image.read("log")
    );
    let mut gateway = open_channel(&container).await;
    gateway
        .write_all(&encode(&ToAgent::Lead).expect("a frame"))
        .await
        .expect("lead");
    let program = sh(&agent, None, "curl -s -m 100 https://name.example:8443/");
    let (_, opened) = tokio::join!(program, next_open(&mut gateway));
    assert_eq!(opened, ("name.example".to_owned(), 8443, Via::Connect));
}
