//! Sockets whose close takes as long as the sandbox likes.

use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::sockopt;
use sandyard_core::network::NetworkPolicy;
use sandyard_wire::egress::{FromAgent, Via};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::agent::{Listener, pair};
use super::{TestEnv, grant, only};

/// More than the gateway has threads.
const MANY_CONNECTIONS: usize = 40;

/// How long a close takes that waits; how long the tests wait for anything else.
const LONG: Duration = Duration::from_secs(600);
const TIMEOUT: Duration = Duration::from_secs(120);

/// A socket full of bytes that nobody reads. Its close waits once it is made to linger.
async fn full() -> (TcpStream, TcpStream) {
    let (program, accepted) = pair().await;
    while accepted.try_write(&[0; 64 * 1024]).is_ok() {}
    (program, accepted)
}

async fn lingering() -> (TcpStream, TcpStream) {
    let (program, accepted) = full().await;
    sockopt::set_socket_linger(&accepted, Some(LONG)).unwrap();
    (program, accepted)
}

/// Fails unless the gateway still serves a sandbox that has nothing to do with it.
async fn assert_others_are_served(env: &TestEnv) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let listener_address = Listener::open();
    env.gateway.attach(
        "other",
        listener_address.endpoint(),
        grant(NetworkPolicy::default()),
    );
    let served = tokio::time::timeout(TIMEOUT, async {
        let agent = listener_address.accept().await;
        for _ in 0..MANY_CONNECTIONS {
            let mut program = agent.connect("127.0.0.1", port).await;
            let (mut outside, _) = listener.accept().await.unwrap();
            program.write_all(b"\x01").await.unwrap();
            assert_eq!(outside.read_u8().await.unwrap(), 1);
        }
    });
    served.await.expect("the gateway serves other sandboxes");
}

fn open(host: &str, port: u16) -> FromAgent {
    FromAgent::Open {
        host: host.to_owned(),
        port,
        via: Via::Redirect,
        early: bytes::Bytes::new(),
    }
}

#[tokio::test]
async fn descriptors_without_a_frame_block_no_thread() {
    let mut env = TestEnv::new(&["127.0.0.1"], NetworkPolicy::default()).await;
    let mut readers = Vec::new();
    for _ in 0..MANY_CONNECTIONS {
        let (reader, socket) = lingering().await;
        env.agent
            .send(b"\xff\xff\xff\xff", Some(socket.as_fd()))
            .await;
        readers.push(reader);
        drop(socket);
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(TIMEOUT, env.agent.stream.read_to_end(&mut rest));
        let _ = ended.await.expect("the channel ends");
        let next = tokio::time::timeout(TIMEOUT, env.listener_address.accept());
        env.agent = next.await.expect("the gateway comes again");
    }
    assert_others_are_served(&env).await;
}

#[tokio::test]
async fn unread_descriptors_of_a_channel_block_no_thread() {
    let mut env = TestEnv::new(&["127.0.0.1"], NetworkPolicy::default()).await;
    let mut readers = Vec::new();
    for _ in 0..MANY_CONNECTIONS {
        for _ in 0..3 {
            let (reader, socket) = lingering().await;
            // A part of a frame, so that nothing is done with them.
            env.agent.send(b"\x00", Some(socket.as_fd())).await;
            readers.push(reader);
        }
        env.agent = {
            let (agent, listener_address) = (env.agent, &env.listener_address);
            drop(agent);
            let next = tokio::time::timeout(TIMEOUT, listener_address.accept());
            next.await.expect("the gateway comes again")
        };
    }
    assert_others_are_served(&env).await;
}

#[tokio::test]
async fn lingering_connections_block_no_thread() {
    let env = TestEnv::new(&["127.0.0.1"], NetworkPolicy::default()).await;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut held = Vec::new();
    for _ in 0..MANY_CONNECTIONS {
        let (program, accepted) = full().await;
        let open = open("127.0.0.1", port);
        env.agent.say(&open, Some(accepted.as_fd())).await;
        let (outside, _) = listener.accept().await.unwrap();
        sockopt::set_socket_linger(&accepted, Some(LONG)).unwrap();
        held.push((program, outside));
    }
    // Not allowed any more: all of them are cut.
    env.change(only(&[]));
    for (_, outside) in &mut held {
        let cut = tokio::time::timeout(TIMEOUT, outside.read_u8());
        cut.await.expect("the connection is cut").unwrap_err();
    }
    assert_others_are_served(&env).await;
}

#[tokio::test]
async fn rejected_connections_block_no_thread() {
    let env = TestEnv::with(NetworkPolicy::default(), |settings| {
        settings.reachable = super::targets(&["127.0.0.1"]);
        settings.max_connections = 0;
    })
    .await;
    let mut readers = Vec::new();
    for _ in 0..MANY_CONNECTIONS {
        let (reader, socket) = lingering().await;
        env.agent
            .say(&open("127.0.0.1", 80), Some(socket.as_fd()))
            .await;
        readers.push(reader);
    }
    let mut env = env;
    let reported = tokio::time::timeout(TIMEOUT, env.flow());
    assert_eq!(
        reported.await.expect("a record").denial.unwrap().code(),
        "too_many"
    );
}
