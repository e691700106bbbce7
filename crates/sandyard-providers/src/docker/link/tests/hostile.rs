//! Containers that violate the protocol.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sandyard_agent_client::BoxedStream;
use sandyard_agent_client::wire::egress::{FromAgent, Via, encode};
use sandyard_agent_client::wire::host::InitRequest;
use sandyard_link::{EGRESS_READY, Inbound, LinkStream, Mux, Side, StreamKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;

use super::env::{TestEnv, sh};
use crate::docker::link::connection::Link;
use crate::docker::link::{Links, OpenLink};

/// Passes the other end of each link to the test.
struct TestOpener(mpsc::UnboundedSender<DuplexStream>);

#[async_trait]
impl OpenLink for TestOpener {
    async fn open(&self, _: &str) -> io::Result<BoxedStream> {
        let (own, foreign) = tokio::io::duplex(1 << 16);
        self.0.send(foreign).map_err(io::Error::other)?;
        Ok(Box::new(own))
    }

    async fn init_request(&self, _: &str) -> io::Result<InitRequest> {
        Ok(InitRequest::default())
    }
}

/// A link whose other end belongs to the test.
fn link_with_test_end() -> (Arc<Link>, Mux, Inbound) {
    let (own, foreign) = tokio::io::duplex(1 << 16);
    let (mux, inbound) = Mux::start(foreign, Side::Container);
    (Link::start(Box::new(own)), mux, inbound)
}

/// The next connection of a kind.
async fn next(inbound: &mut Inbound, kind: StreamKind) -> LinkStream {
    loop {
        let mut stream = inbound.next().await.expect("a connection");
        if stream.read_u8().await.expect("its kind") == kind.byte() {
            return stream;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_ends_its_link_only() {
    let (sender, mut opened_count) = mpsc::unbounded_channel();
    let links = Links::new(Arc::new(TestOpener(sender)));
    let env = TestEnv::new();
    for garbage in [
        b"OCI runtime exec failed: no such file\r\n".to_vec(),
        vec![0xff; 4096],
        vec![0; 4096],
        Vec::new(),
        // A yamux frame that announces four gibibytes.
        [&[0, 0, 0, 1, 0, 0, 0, 2][..], &[0xff; 4]].concat(),
    ] {
        let dialler = links.dialler("hostile");
        let dialling = tokio::spawn(async move { dialler.dial().await.map(drop) });
        let mut container = opened_count.recv().await.expect("opened");
        let _ = container.write_all(&garbage).await;
        drop(container);
        let dialled = tokio::time::timeout(Duration::from_secs(120), dialling).await;
        dialled
            .expect("in time")
            .expect("no panic")
            .expect_err("an error");
        assert_eq!(sh(&env.client(), "echo 1").await, "1\n");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_connections_are_not_accepted() {
    let (link, mux, mut inbound) = link_with_test_end();
    let reading = tokio::spawn(async move { while inbound.next().await.is_some() {} });
    // More than allowed at a time, and none sends its head.
    let mut shelf = Vec::new();
    for number in 0..5000_u32 {
        match tokio::time::timeout(Duration::from_secs(5), mux.try_open(b"")).await {
            Ok(Ok(stream)) => shelf.push(stream),
            _ => shelf.clear(),
        }
        if let Some(stream) = shelf.last_mut() {
            // An incomplete head.
            let _ = stream.write_all(&number.to_be_bytes()[..1]).await;
        }
    }
    link.mux.close();
    reading.await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_for_missing_channels_are_dropped() {
    let (_link, mux, _inbound) = link_with_test_end();
    let open = FromAgent::Open {
        host: "example.com".to_owned(),
        port: 443,
        via: Via::Redirect,
        early: Default::default(),
    };
    let frame = encode(&open).expect("a frame");
    let stray = encode(&FromAgent::BlockedPackets {
        protocol: 17,
        address: [1, 1, 1, 1].into(),
        port: None,
        count: 1,
    });
    let kind = StreamKind::Outgoing.byte();
    for head in [
        [&[kind, 0, 0, 0, 9], &frame[..]].concat(),
        [&[kind, 0, 0, 0, 1], &stray.expect("a frame")[..]].concat(),
        vec![kind, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff],
        vec![kind, 0, 0, 0, 1, 0, 0, 0, 1, b'{'],
        vec![StreamKind::Agent.byte()],
        vec![0],
    ] {
        let mut stream = mux.open(&head).await.expect("a connection");
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(120), stream.read_to_end(&mut rest));
        ended.await.expect("in time").expect_err("broken off");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_frames_end_their_channel_only() {
    let (link, _mux, mut inbound) = link_with_test_end();
    for frame in [&[0xff; 8][..], b"\0\0\0\x02"] {
        let opening = link.clone();
        let opening = tokio::spawn(async move { opening.open_egress().await });
        let mut stream = next(&mut inbound, StreamKind::Egress).await;
        stream.write_u8(EGRESS_READY).await.expect("ready");
        stream.write_all(frame).await.expect("garbage");
        stream.shutdown().await.expect("end");
        let mut gateway = opening.await.expect("no panic").expect("a channel");
        let mut received = Vec::new();
        gateway.read_to_end(&mut received).await.expect("the end");
        assert!(received.is_empty(), "half a frame was passed on");
    }
    assert!(!link.has_ended());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_without_egress_refuses_the_channel() {
    let (link, _mux, mut inbound) = link_with_test_end();
    let opening = tokio::spawn(async move { link.open_egress().await });
    drop(next(&mut inbound, StreamKind::Egress).await);
    opening.await.expect("no panic").expect_err("no egress");
}
