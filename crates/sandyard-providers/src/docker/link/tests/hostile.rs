//! A container that breaks the rules.

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

/// Hands out what a test plays the other end of.
struct Played(mpsc::UnboundedSender<DuplexStream>);

#[async_trait]
impl OpenLink for Played {
    async fn open(&self, _: &str) -> io::Result<BoxedStream> {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        self.0.send(theirs).map_err(io::Error::other)?;
        Ok(Box::new(ours))
    }

    async fn init_request(&self, _: &str) -> io::Result<InitRequest> {
        Ok(InitRequest::default())
    }
}

/// A link whose other end is the test's.
fn played() -> (Arc<Link>, Mux, Inbound) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (mux, inbound) = Mux::start(theirs, Side::Container);
    (Link::start(Box::new(ours)), mux, inbound)
}

/// The next connection of a kind.
async fn next(inbound: &mut Inbound, kind: StreamKind) -> LinkStream {
    loop {
        let mut carried = inbound.next().await.expect("a connection");
        if carried.read_u8().await.expect("its kind") == kind.byte() {
            return carried;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_ends_a_link_and_harms_no_other() {
    let (sender, mut opened) = mpsc::unbounded_channel();
    let links = Links::new(Arc::new(Played(sender)));
    let env = TestEnv::new();
    for garbage in [
        b"OCI runtime exec failed: no such file\r\n".to_vec(),
        vec![0xff; 4096],
        vec![0; 4096],
        Vec::new(),
        // A frame of yamux's that announces four gibibytes.
        [&[0, 0, 0, 1, 0, 0, 0, 2][..], &[0xff; 4]].concat(),
    ] {
        let way = links.way("hostile");
        let dialling = tokio::spawn(async move { way.dial().await.map(drop) });
        let mut container = opened.recv().await.expect("opened");
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
async fn thousands_of_connections_are_not_taken() {
    let (link, mux, mut inbound) = played();
    let reading = tokio::spawn(async move { while inbound.next().await.is_some() {} });
    // More than are let be at a time, and none says what it is.
    let mut held = Vec::new();
    for number in 0..5000_u32 {
        match tokio::time::timeout(Duration::from_secs(5), mux.try_open(b"")).await {
            Ok(Ok(carried)) => held.push(carried),
            _ => held.clear(),
        }
        if let Some(carried) = held.last_mut() {
            // Half of a head, and nothing more.
            let _ = carried.write_all(&number.to_be_bytes()[..1]).await;
        }
    }
    link.mux.close();
    reading.await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_for_channels_that_are_not_there_are_dropped() {
    let (_link, mux, _inbound) = played();
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
    let taken = StreamKind::Outgoing.byte();
    for head in [
        [&[taken, 0, 0, 0, 9], &frame[..]].concat(),
        [&[taken, 0, 0, 0, 1], &stray.expect("a frame")[..]].concat(),
        vec![taken, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff],
        vec![taken, 0, 0, 0, 1, 0, 0, 0, 1, b'{'],
        vec![StreamKind::Agent.byte()],
        vec![0],
    ] {
        let mut carried = mux.open(&head).await.expect("a connection");
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(120), carried.read_to_end(&mut rest));
        ended.await.expect("in time").expect_err("broken off");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_that_are_none_end_their_channel_only() {
    let (link, _mux, mut inbound) = played();
    for frame in [&[0xff; 8][..], b"\0\0\0\x02"] {
        let opening = link.clone();
        let opening = tokio::spawn(async move { opening.open_egress().await });
        let mut carried = next(&mut inbound, StreamKind::Egress).await;
        carried.write_u8(EGRESS_READY).await.expect("ready");
        carried.write_all(frame).await.expect("nonsense");
        carried.shutdown().await.expect("end");
        let mut gateway = opening.await.expect("no panic").expect("a channel");
        let mut heard = Vec::new();
        gateway.read_to_end(&mut heard).await.expect("the end");
        assert!(heard.is_empty(), "half a frame was passed on");
    }
    assert!(!link.has_ended());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_without_a_way_out_is_told_from_one_that_has() {
    let (link, _mux, mut inbound) = played();
    let opening = tokio::spawn(async move { link.open_egress().await });
    drop(next(&mut inbound, StreamKind::Egress).await);
    opening.await.expect("no panic").expect_err("no way out");
}
