//! Egress through a real gateway.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use sandyard_core::network::{Flow, FlowVerdict, NetworkGrant, NetworkPolicy, Target};
use sandyard_gateway::{Gateway, GatewaySettings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::env::{TestEnv, until};

struct EgressEnv {
    env: TestEnv,
    gateway: Option<Gateway>,
    flows: mpsc::Receiver<Flow>,
}

impl EgressEnv {
    /// Programs may reach this host, if the policy allows it.
    fn new(policy: NetworkPolicy) -> Self {
        let env = TestEnv::with(&["--proxy", "127.0.0.1:0"]);
        let (gateway, flows) = start(&env, policy);
        Self {
            env,
            gateway: Some(gateway),
            flows,
        }
    }

    /// A program that asks its proxy for a connection; returns the proxy's first answer. On a busy machine the gateway may start
    /// too late for the proxy's timeout: then it asks again.
    async fn connect(&self, port: u16) -> (TcpStream, String) {
        let give_up = Instant::now() + Duration::from_secs(120);
        loop {
            let (program, head) = self.connect_once(port).await;
            if !head.starts_with("HTTP/1.1 5") || Instant::now() > give_up {
                return (program, head);
            }
        }
    }

    async fn connect_once(&self, port: u16) -> (TcpStream, String) {
        let proxy = &self.env.addresses["proxy"];
        let mut program = TcpStream::connect(proxy).await.expect("the proxy");
        let ask = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: x\r\n\r\n");
        program.write_all(ask.as_bytes()).await.expect("ask");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(program.read_u8().await.expect("an answer"));
        }
        (program, String::from_utf8_lossy(&head).into_owned())
    }
}

fn start(env: &TestEnv, policy: NetworkPolicy) -> (Gateway, mpsc::Receiver<Flow>) {
    let mut settings = GatewaySettings::new(env.folder.path().join("gateway"));
    settings.reachable = vec!["127.0.0.1".parse::<Target>().expect("a target")];
    let (gateway, flows) = Gateway::start(settings).expect("a gateway");
    let grant = NetworkGrant {
        sandbox_id: "one".parse().expect("an id"),
        owner: "me".to_owned(),
        policy,
        secrets: Vec::new(),
        is_leading: true,
    };
    gateway.attach("one", env.endpoint(), grant);
    (gateway, flows)
}

async fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a port");
    let port = listener.local_addr().expect("its address").port();
    (listener, port)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_reaches_a_server_and_both_ends_are_closed() {
    let mut out = EgressEnv::new(NetworkPolicy::default());
    let (listener, port) = listener().await;
    for _ in 0..3 {
        let (mut program, head) = out.connect(port).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let server = async {
            let (mut server, _) = listener.accept().await.expect("a connection");
            let mut received = Vec::new();
            server.read_to_end(&mut received).await.expect("to the end");
            server.write_all(&received).await.expect("answer");
            received.len()
        };
        let request = vec![7; 3 << 20];
        let program = async {
            program.write_all(&request).await.expect("ask");
            program.shutdown().await.expect("end");
            let mut answer = Vec::new();
            program.read_to_end(&mut answer).await.expect("to the end");
            answer.len()
        };
        assert_eq!(
            tokio::join!(server, program),
            (request.len(), request.len())
        );
        let flow = out.flows.recv().await.expect("a record");
        assert_eq!(flow.verdict, FlowVerdict::Allowed);
        assert_eq!(flow.port, Some(port));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_outside_is_a_reset_in_the_container() {
    let out = EgressEnv::new(NetworkPolicy::default());
    let (listener, port) = listener().await;
    let (mut program, _) = out.connect(port).await;
    let (mut server, _) = listener.accept().await.expect("a connection");
    program.write_all(b"question").await.expect("ask");
    let mut received = [0; 8];
    server.read_exact(&mut received).await.expect("hear");
    server.write_all(b"half an ans").await.expect("answer");
    let mut half = [0; 11];
    program.read_exact(&mut half).await.expect("half");
    // A reset, as when a server is killed.
    let server = server.into_std().expect("a socket");
    sandyard_link::splice::reset(&server);
    drop(server);
    let mut rest = Vec::new();
    program.read_to_end(&mut rest).await.expect_err("a reset");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denied_connection_is_refused_and_recorded() {
    let mut out = EgressEnv::new(NetworkPolicy {
        allow_internet_access: false,
        ..NetworkPolicy::default()
    });
    let (_listener, port) = listener().await;
    let (_, head) = out.connect(port).await;
    assert!(head.starts_with("HTTP/1.1 403"), "{head}");
    let flow = out.flows.recv().await.expect("a record");
    assert_eq!(flow.verdict, FlowVerdict::Denied);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn egress_recovers_after_a_broken_link_and_a_new_gateway() {
    let mut out = EgressEnv::new(NetworkPolicy::default());
    let (listener, port) = listener().await;
    for round in 0..3 {
        let (mut program, head) = out.connect(port).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let (mut server, _) = listener.accept().await.expect("a connection");
        program.write_u8(round).await.expect("ask");
        assert_eq!(server.read_u8().await.expect("hear"), round);
        if round == 1 {
            // One gateway at a time, as when a server restarts: the threads of the old one end with it.
            out.gateway = None;
            let (gateway, flows) = start(&out.env, NetworkPolicy::default());
            (out.gateway, out.flows) = (Some(gateway), flows);
        } else {
            out.env.opener.kill_all();
            until(|| out.env.opener.have_all_ended()).await;
            let mut rest = Vec::new();
            program.read_to_end(&mut rest).await.expect_err("a reset");
        }
    }
}
