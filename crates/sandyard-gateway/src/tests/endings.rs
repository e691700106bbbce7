//! How connections end, and that they do.

use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::time::Duration;

use rustix::net::sockopt;
use sandyard_core::network::{FlowVerdict, NetworkPolicy};
use sandyard_wire::egress::{FromAgent, Via};
use std::os::fd::AsFd;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::agent::pair;
use super::{TestEnv, only, targets};
use crate::settings::FlowLimits;

async fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// A program and the server it is connected with, through the gateway.
async fn connected(env: &TestEnv) -> (TcpStream, TcpStream) {
    let (listener, port) = listener().await;
    let mut program = env.agent.connect("127.0.0.1", port).await;
    let (mut outside, _) = listener.accept().await.unwrap();
    program.write_all(b"\x01").await.unwrap();
    assert_eq!(outside.read_u8().await.unwrap(), 1);
    (program, outside)
}

#[tokio::test]
async fn a_server_that_answers_before_it_has_heard_all_is_heard() {
    let env = TestEnv::new(&["127.0.0.1"], NetworkPolicy::default()).await;
    for _ in 0..20 {
        let (mut program, mut outside) = connected(&env).await;
        outside.write_all(b"too much").await.unwrap();
        // With bytes unread this is a reset.
        program.write_all(&[2; 64 * 1024]).await.unwrap();
        outside.readable().await.unwrap();
        drop(outside);
        let mut answer = [0; 8];
        program.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"too much");
    }
}

#[tokio::test]
async fn what_a_program_breaks_off_does_not_look_complete_outside() {
    let env = TestEnv::new(&["127.0.0.1"], NetworkPolicy::default()).await;
    let (program, mut outside) = connected(&env).await;
    sockopt::set_socket_linger(&program, Some(Duration::ZERO)).unwrap();
    drop(program);
    let error = outside.read_u8().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn what_a_policy_cuts_does_not_look_complete_to_either_side() {
    let env = TestEnv::new(&["127.0.0.1"], NetworkPolicy::default()).await;
    let (mut program, mut outside) = connected(&env).await;
    env.change(only(&[]));
    for end in [&mut program, &mut outside] {
        let error = end.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
}

#[tokio::test]
async fn the_end_of_the_gateway_is_a_reset_and_a_record() {
    let mut env = TestEnv::new(&["127.0.0.1"], NetworkPolicy::default()).await;
    let (mut program, _outside) = connected(&env).await;
    env.gateway.shut_down().await;
    let error = program.read_u8().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let flow = env.flows.try_recv().unwrap();
    assert_eq!(flow.verdict, FlowVerdict::Allowed);
    assert_eq!(flow.sent_bytes, 1);
    assert!(flow.failure.is_some());
}

#[tokio::test]
async fn an_orderly_end_is_one_on_both_sides() {
    let mut env = TestEnv::new(&["127.0.0.1"], NetworkPolicy::default()).await;
    let (mut program, mut outside) = connected(&env).await;
    program.shutdown().await.unwrap();
    assert_eq!(outside.read(&mut [0; 8]).await.unwrap(), 0);
    outside.write_all(b"bye").await.unwrap();
    drop(outside);
    let mut rest = Vec::new();
    program.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"bye");
    assert_eq!(env.flow().await.failure, None);
}

#[tokio::test]
async fn a_low_rate_loses_nothing() {
    let env = TestEnv::with(NetworkPolicy::default(), |settings| {
        settings.reachable = targets(&["127.0.0.1"]);
        settings.limits = FlowLimits {
            bytes_per_second: Some(2000),
            ..FlowLimits::default()
        };
    })
    .await;
    let (listener, port) = listener().await;
    let mut program = env.agent.connect("127.0.0.1", port).await;
    let (mut outside, _) = listener.accept().await.unwrap();
    // Without a line's end the gateway waits for more, and gives up on that in the midst of waiting for its turn.
    let sent: Vec<u8> = (0..5000_u32).map(|n| b'a' + (n % 26) as u8).collect();
    for piece in sent.chunks(1700) {
        program.write_all(piece).await.unwrap();
    }
    program.shutdown().await.unwrap();
    let mut received_text = Vec::new();
    outside.read_to_end(&mut received_text).await.unwrap();
    assert!(
        received_text == sent,
        "{} of {} bytes",
        received_text.len(),
        sent.len()
    );
}

#[tokio::test]
async fn an_unread_refusal_blocks_nothing() {
    let env = TestEnv::new(&["127.0.0.1"], only(&[])).await;
    let (program, accepted) = pair().await;
    // Full, and never read from.
    while accepted.try_write(&[0; 64 * 1024]).is_ok() {}
    let open = FromAgent::Open {
        host: "127.0.0.1".to_owned(),
        port: 80,
        via: Via::Connect,
        early: bytes::Bytes::new(),
    };
    for _ in 0..3000 {
        env.agent.say(&open, Some(accepted.as_fd())).await;
    }
    drop(accepted);
    let deadline = tokio::time::Instant::now() + Duration::from_secs(120);
    while env.gateway.counts().1 > 0 || open_sockets() > 1000 {
        let remaining = (env.gateway.counts(), open_sockets());
        assert!(tokio::time::Instant::now() < deadline, "{remaining:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(program);
}

fn open_sockets() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}
