//! Agents that lie.

use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::fs::OFlags;
use sandyard_core::network::{FlowVerdict, NetworkPolicy, Protocol};
use sandyard_wire::egress::{FromAgent, Via};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::TestEnv;
use super::agent::pair;

fn open(port: u16) -> FromAgent {
    FromAgent::Open {
        host: "127.0.0.1".to_owned(),
        port,
        via: Via::Redirect,
        early: bytes::Bytes::new(),
    }
}

async fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

#[tokio::test]
async fn invalid_frames_end_the_channel_and_the_next_one_works() {
    let mut env = TestEnv::new(&["127.0.0.1"], NetworkPolicy::default()).await;
    let (_listener, port) = listener().await;
    let without_descriptor = sandyard_wire::egress::encode(&open(port)).unwrap();
    for invalid in [
        &b"\xff\xff\xff\xff"[..],
        b"\x00\x00\x00\x02{}",
        b"\x00\x00\x00\x01\x00",
        &without_descriptor,
    ] {
        env.agent.send(invalid, None).await;
        let mut rest = Vec::new();
        let _ = env.agent.stream.read_to_end(&mut rest).await;
        env.agent = env.listener_address.accept().await;
    }
}

#[tokio::test]
async fn descriptors_that_are_no_connections_are_dropped() {
    let env = TestEnv::new(&["127.0.0.1"], NetworkPolicy::default()).await;
    let (listener, port) = listener().await;
    let (pipe, _other) = rustix::pipe::pipe().unwrap();
    let file = std::fs::File::open("/dev/null").unwrap();
    let (unix, _other) = tokio::net::UnixStream::pair().unwrap();
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for descriptor in [
        pipe.as_fd(),
        file.as_fd(),
        unix.as_fd(),
        udp.as_fd(),
        listener.as_fd(),
    ] {
        env.agent.say(&open(port), Some(descriptor)).await;
    }
    // The channel still works.
    let mut program = env.agent.connect("127.0.0.1", port).await;
    let (mut accepted, _) = listener.accept().await.unwrap();
    program.write_all(b"\x01").await.unwrap();
    assert_eq!(accepted.read_u8().await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_socket_made_blocking_by_the_sandbox_blocks_no_thread() {
    let env = TestEnv::new(&["127.0.0.1"], NetworkPolicy::default()).await;
    let (listener, port) = listener().await;
    let (mut program, accepted) = pair().await;
    let accepted = accepted.into_std().unwrap();
    env.agent.say(&open(port), Some(accepted.as_fd())).await;
    let (mut outside, _) = listener.accept().await.unwrap();
    // The flags belong to the socket, which the sandbox still holds.
    let flags = rustix::fs::fcntl_getfl(&accepted).unwrap();
    rustix::fs::fcntl_setfl(&accepted, flags - OFlags::NONBLOCK).unwrap();
    program.write_all(b"\x01").await.unwrap();
    assert_eq!(outside.read_u8().await.unwrap(), 1);
    // Fill it up: nobody reads at the program's end.
    let flood = tokio::spawn(async move {
        let piece = vec![0; 1 << 20];
        while outside.write_all(&piece).await.is_ok() {}
    });
    let mut other = env.agent.connect("127.0.0.1", port).await;
    let (mut outside, _) = listener.accept().await.unwrap();
    other.write_all(b"\x02").await.unwrap();
    assert_eq!(outside.read_u8().await.unwrap(), 2);
    flood.abort();
}

#[tokio::test]
async fn what_nothing_carries_is_written_down() {
    let mut env = TestEnv::new(&[], NetworkPolicy::default()).await;
    let stray = FromAgent::BlockedPackets {
        protocol: 17,
        address: "8.8.8.8".parse().unwrap(),
        port: Some(9999),
        count: u64::MAX,
    };
    env.agent.say(&stray, None).await;
    let flow = env.flow().await;
    assert_eq!(flow.protocol, Protocol::Udp);
    assert_eq!(flow.verdict, FlowVerdict::Denied);
    assert_eq!(flow.denial.unwrap().code(), "protocol_not_carried");
}

#[tokio::test]
async fn a_host_that_is_none_is_refused() {
    let mut env = TestEnv::new(&[], NetworkPolicy::default()).await;
    for host in ["", "a b", "a\0b", "..", &"a".repeat(300)] {
        let mut program = env.agent.connect(host, 80).await;
        assert!(program.read_u8().await.is_err());
        assert_eq!(env.flow().await.verdict, FlowVerdict::Failed, "{host:?}");
    }
    // No flow was left waiting.
    tokio::time::timeout(Duration::from_millis(10), env.flow())
        .await
        .unwrap_err();
}
