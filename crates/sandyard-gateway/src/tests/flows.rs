//! Connections that are carried, and such that are not.

use std::io::ErrorKind;
use std::net::Ipv4Addr;

use sandyard_core::network::{FlowVerdict, NetworkGrant, NetworkPolicy, Protocol};
use sandyard_wire::egress::{ToAgent, Via};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::agent::Listener;
use super::{TestEnv, grant, only};
use crate::settings::FlowLimits;

/// A server that gives back what it gets.
async fn echo() -> u16 {
    serve(|mut stream| async move {
        let (mut from, mut to) = stream.split();
        let _ = tokio::io::copy(&mut from, &mut to).await;
        let _ = to.shutdown().await;
    })
    .await
}

async fn serve<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> u16
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    port
}

#[tokio::test]
async fn bytes_flow_in_both_directions_and_are_counted() {
    let port = echo().await;
    let mut env = TestEnv::new(&["127.0.0.1"], NetworkPolicy::default()).await;
    assert_eq!(env.agent.receive().await, ToAgent::Lead);
    let mut program = env.agent.connect("127.0.0.1", port).await;
    let sent: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    let (mut from, mut to) = program.split();
    let writing = async {
        to.write_all(&sent).await.unwrap();
        to.shutdown().await.unwrap();
    };
    let mut back = Vec::new();
    let (_, read) = tokio::join!(writing, from.read_to_end(&mut back));
    read.unwrap();
    assert!(back == sent, "what came back differs");
    let flow = env.flow().await;
    assert_eq!(flow.verdict, FlowVerdict::Allowed);
    assert_eq!(flow.protocol, Protocol::Tcp);
    assert_eq!(
        (flow.sent_bytes, flow.received_bytes),
        (3_000_000, 3_000_000)
    );
    assert_eq!(flow.port, Some(port));
    assert_eq!(flow.failure, None);
}

#[tokio::test]
async fn a_server_may_speak_first() {
    let port = serve(|mut stream| async move {
        stream.write_all(b"220 hello\r\n").await.unwrap();
        let mut line = [0; 6];
        stream.read_exact(&mut line).await.unwrap();
        stream.write_all(&line).await.unwrap();
    })
    .await;
    let env = TestEnv::new(&["127.0.0.1"], NetworkPolicy::default()).await;
    let mut program = env.agent.connect("127.0.0.1", port).await;
    let mut greeting = [0; 11];
    program.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"220 hello\r\n");
    program.write_all(b"QUIT\r\n").await.unwrap();
    let mut rest = Vec::new();
    program.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"QUIT\r\n");
}

#[tokio::test]
async fn the_hosts_loopback_is_closed_unless_the_operator_opens_it() {
    let port = echo().await;
    let mut env = TestEnv::new(&[], NetworkPolicy::default()).await;
    for host in [
        "127.0.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "169.254.169.254",
        "10.1.2.3",
    ] {
        let mut program = env.agent.connect(host, port).await;
        let error = program.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{host}");
        let flow = env.flow().await;
        assert_eq!(flow.verdict, FlowVerdict::Denied, "{host}");
        assert_eq!(flow.denial.unwrap().code(), "closed_address", "{host}");
    }
}

#[tokio::test]
async fn proxy_clients_get_the_reason_of_a_refusal() {
    let port = echo().await;
    let env = TestEnv::new(&["127.0.0.1"], only(&[])).await;
    let mut program = env
        .agent
        .connect_via("127.0.0.1", port, Via::Connect, b"")
        .await;
    let mut answer = String::new();
    program.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert!(answer.contains("may reach"), "{answer}");
    let mut program = env
        .agent
        .connect_via("127.0.0.1", port, Via::Socks, b"")
        .await;
    let mut answer = [0; 10];
    program.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer[..2], [5, 2]);
}

#[tokio::test]
async fn proxy_clients_get_a_confirmation() {
    let port = echo().await;
    let env = TestEnv::new(&["127.0.0.1"], only(&["127.0.0.1"])).await;
    let mut program = env
        .agent
        .connect_via("127.0.0.1", port, Via::Connect, b"")
        .await;
    let accepted = b"HTTP/1.1 200 Connection established\r\n\r\n";
    let mut answer = vec![0; accepted.len()];
    program.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, accepted);
    program.write_all(b"\x01ping").await.unwrap();
    let mut back = [0; 5];
    program.read_exact(&mut back).await.unwrap();
    assert_eq!(&back, b"\x01ping");
}

#[tokio::test]
async fn a_change_cuts_what_is_no_longer_allowed_and_nothing_else() {
    let (allowed_port, denied_port) = (echo().await, echo().await);
    let mut env = TestEnv::new(&["127.0.0.1"], NetworkPolicy::default()).await;
    let mut programs = Vec::new();
    for port in [allowed_port, denied_port] {
        let mut program = env.agent.connect("127.0.0.1", port).await;
        program.write_all(b"\x01").await.unwrap();
        assert_eq!(program.read_u8().await.unwrap(), 1);
        programs.push(program);
    }
    env.change(only(&[&format!("127.0.0.1:{allowed_port}")]));
    let error = programs[1].read_u8().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let flow = env.flow().await;
    assert_eq!(
        (flow.port, flow.verdict),
        (Some(denied_port), FlowVerdict::Denied)
    );
    assert_eq!((flow.sent_bytes, flow.received_bytes), (1, 1));
    programs[0].write_all(b"\x02").await.unwrap();
    assert_eq!(programs[0].read_u8().await.unwrap(), 2);
}

#[tokio::test]
async fn connections_are_limited_one_by_one_and_by_rate() {
    let port = echo().await;
    let mut env = TestEnv::with(NetworkPolicy::default(), |settings| {
        settings.reachable = super::targets(&["127.0.0.1"]);
        settings.limits = FlowLimits {
            connections: 2,
            ..FlowLimits::default()
        };
    })
    .await;
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut program = env.agent.connect("127.0.0.1", port).await;
        program.write_all(b"\x01").await.unwrap();
        program.read_u8().await.unwrap();
        open.push(program);
    }
    let mut third = env.agent.connect("127.0.0.1", port).await;
    let error = third.read_u8().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let denial = env.flow().await.denial.unwrap();
    assert_eq!(denial.code(), "too_many");
    drop(open);
    for _ in 0..2 {
        assert_eq!(env.flow().await.verdict, FlowVerdict::Allowed);
    }
    let mut program = env.agent.connect("127.0.0.1", port).await;
    program.write_all(b"\x03").await.unwrap();
    assert_eq!(program.read_u8().await.unwrap(), 3);
}

#[tokio::test]
async fn one_owners_sandboxes_take_half_of_all_connections_at_most() {
    let port = echo().await;
    let mut env = TestEnv::with(NetworkPolicy::default(), |settings| {
        settings.reachable = super::targets(&["127.0.0.1"]);
        settings.max_connections = 4;
    })
    .await;
    let attach = async |key: &str, owner: &str| {
        let listener_address = Listener::open();
        let grant = NetworkGrant {
            owner: owner.to_owned(),
            ..grant(NetworkPolicy::default())
        };
        env.gateway.attach(key, listener_address.endpoint(), grant);
        let agent = listener_address.accept().await;
        (listener_address, agent)
    };
    let (_door, second) = attach("two", "me").await;
    let (_door, others) = attach("three", "you").await;
    let mut open = Vec::new();
    for agent in [&env.agent, &second, &others, &others] {
        let mut program = agent.connect("127.0.0.1", port).await;
        program.write_all(b"\x01").await.unwrap();
        program.read_u8().await.unwrap();
        open.push(program);
    }
    for agent in [&env.agent, &second] {
        let mut program = agent.connect("127.0.0.1", port).await;
        let error = program.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    let denial = env.flow().await.denial.unwrap().to_string();
    assert!(
        denial.contains("2 open connections of one owner"),
        "{denial}"
    );
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_a_failure_and_not_a_denial() {
    // It has the port, and does not listen.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let port = socket.local_addr().unwrap().port();
    let mut env = TestEnv::new(&["127.0.0.1"], NetworkPolicy::default()).await;
    let mut program = env.agent.connect("127.0.0.1", port).await;
    let error = program.read_u8().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let flow = env.flow().await;
    assert_eq!(flow.verdict, FlowVerdict::Failed);
    assert!(flow.failure.unwrap().contains("refused"));
}

#[tokio::test]
async fn a_sandbox_that_goes_takes_its_flows_along() {
    let port = echo().await;
    let mut env = TestEnv::new(&["127.0.0.1"], NetworkPolicy::default()).await;
    let mut program = env.agent.connect("127.0.0.1", port).await;
    program.write_all(b"\x01").await.unwrap();
    program.read_u8().await.unwrap();
    env.gateway.detach("one");
    let error = program.read_u8().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(env.flow().await.verdict, FlowVerdict::Allowed);
    assert_eq!(env.gateway.counts().0, 0);
}

#[tokio::test]
async fn a_broken_channel_is_opened_again_and_flows_go_on() {
    let port = echo().await;
    let mut env = TestEnv::new(&["127.0.0.1"], NetworkPolicy::default()).await;
    let mut program = env.agent.connect("127.0.0.1", port).await;
    program.write_all(b"\x01").await.unwrap();
    program.read_u8().await.unwrap();
    env.agent.stream.shutdown().await.unwrap();
    env.agent = env.listener_address.accept().await;
    program.write_all(b"\x02").await.unwrap();
    assert_eq!(program.read_u8().await.unwrap(), 2);
    let mut other = env.agent.connect("127.0.0.1", port).await;
    other.write_all(b"\x03").await.unwrap();
    assert_eq!(other.read_u8().await.unwrap(), 3);
}
