//! What is looked up, what is said, and where it goes.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sandyard_core::network::{Flow, FlowVerdict, NetworkPolicy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{TestEnv, only, targets};
use crate::flow::RETRY_RANDOM;
use crate::names::testing::{NameServer, address_record, from_records};

/// How long a test waits for an end that must come.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A server that remembers what it was sent, and answers each request with `ok`.
async fn site() -> (u16, Arc<std::sync::Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let received_text = Arc::new(std::sync::Mutex::new(Vec::new()));
    let ears = received_text.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, ears.clone()));
        }
    });
    (port, received_text)
}

async fn answer(mut stream: TcpStream, received_text: Arc<std::sync::Mutex<Vec<u8>>>) {
    let mut piece = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut piece).await {
        received_text
            .lock()
            .unwrap()
            .extend_from_slice(&piece[..count]);
        let ok = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        if stream.write_all(ok).await.is_err() {
            return;
        }
    }
}

async fn env(policy: NetworkPolicy, names: &NameServer, reachable: &[&str]) -> TestEnv {
    TestEnv::with(policy, |settings| {
        settings.nameservers = vec![names.at];
        settings.reachable = targets(reachable);
    })
    .await
}

async fn request(program: &mut TcpStream, host: &str) {
    let text = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
    program.write_all(text.as_bytes()).await.unwrap();
}

fn denied(flow: Flow) -> &'static str {
    assert_eq!(flow.verdict, FlowVerdict::Denied);
    flow.denial.unwrap().code()
}

#[tokio::test]
async fn only_the_name_that_was_looked_up_may_be_asked_for() {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let names = NameServer::with_records(vec![address_record("good.test.", loopback)]).await;
    let (port, received_text) = site().await;
    for policy in [NetworkPolicy::default(), only(&["good.test"])] {
        let is_closed = policy.is_closed();
        let mut env = env(policy, &names, &["good.test"]).await;
        let mut program = env.agent.connect("good.test", port).await;
        request(&mut program, "good.test").await;
        let mut ok = [0; 40];
        program.read_exact(&mut ok).await.unwrap();
        assert!(ok.ends_with(b"ok") || is_closed);
        // A program that goes on with another host.
        if is_closed {
            request(&mut program, "evil.test").await;
            let mut rest = Vec::new();
            let _ = program.read_to_end(&mut rest).await;
            assert_eq!(denied(env.flow().await), "name_mismatch");
        } else {
            drop(program);
            env.flow().await;
        }
        // One that begins with another.
        let mut program = env.agent.connect("good.test", port).await;
        request(&mut program, "evil.test").await;
        let error = program.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        let flow = env.flow().await;
        assert_eq!(flow.name.as_deref(), Some("good.test"));
        assert_eq!(denied(flow), "name_mismatch");
    }
    let received_text = received_text.lock().unwrap();
    assert!(!String::from_utf8_lossy(&received_text).contains("evil"));
}

#[tokio::test]
async fn a_hello_for_another_name_goes_nowhere() {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let names = NameServer::with_records(vec![address_record("good.test.", loopback)]).await;
    let (port, received_text) = site().await;
    let mut env = env(NetworkPolicy::default(), &names, &["good.test"]).await;
    let mut program = env.agent.connect("good.test", port).await;
    program.write_all(&hello("evil.test")).await.unwrap();
    let error = program.read_u8().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(denied(env.flow().await), "name_mismatch");
    assert!(received_text.lock().unwrap().is_empty());
    let mut program = env.agent.connect("good.test", port).await;
    program.write_all(&hello("good.test")).await.unwrap();
    program.read_u8().await.unwrap();
    assert!(!received_text.lock().unwrap().is_empty());
}

fn hello(name: &str) -> Vec<u8> {
    let provider = rustls::crypto::ring::default_provider();
    let config = rustls::ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let name = name.to_owned().try_into().unwrap();
    let mut client = rustls::ClientConnection::new(config.into(), name).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    hello
}

#[tokio::test]
async fn a_name_that_is_not_allowed_is_not_looked_up() {
    let names = NameServer::with_records(Vec::new()).await;
    let mut env = env(only(&["good.test", "127.0.0.1"]), &names, &[]).await;
    let mut program = env.agent.connect("secret-data.evil.test", 443).await;
    let error = program.read_u8().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(denied(env.flow().await), "not_allowed");
    assert_eq!(names.query_sent(), Vec::<String>::new());
}

#[tokio::test]
async fn a_name_that_turns_to_a_closed_address_is_caught_when_it_is_dialled() {
    let query_sent = Arc::new(AtomicUsize::new(0));
    let count = query_sent.clone();
    // The look-up finds a public address, every later one the host's loopback; nothing may be kept.
    let names = NameServer::start(move |message, _| {
        let is_first = count.fetch_add(1, Ordering::Relaxed) < 2;
        let address = if is_first { "203.0.113.9" } else { "127.0.0.1" };
        let mut record = address_record("turns.test.", address.parse().unwrap());
        record.ttl = 0;
        Some(from_records(message, &[record]))
    })
    .await;
    let (port, received_text) = site().await;
    let mut env = env(NetworkPolicy::default(), &names, &[]).await;
    assert_eq!(
        env.gateway.inner().names.addresses("turns.test").await,
        Ok(vec!["203.0.113.9".parse().unwrap()])
    );
    let mut program = env.agent.connect("turns.test", port).await;
    let error = program.read_u8().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(denied(env.flow().await), "closed_address");
    assert!(received_text.lock().unwrap().is_empty());
}

/// A TLS server that answers each first hello with a request for another one, and keeps what it is sent.
async fn retrying_site() -> (u16, Arc<std::sync::Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let received_text = Arc::new(std::sync::Mutex::new(Vec::new()));
    let ears = received_text.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let ears = ears.clone();
            tokio::spawn(async move {
                let mut piece = [0; 4096];
                let mut is_first = true;
                while let Ok(count @ 1..) = stream.read(&mut piece).await {
                    ears.lock().unwrap().extend_from_slice(&piece[..count]);
                    if std::mem::take(&mut is_first) {
                        stream.write_all(&retry()).await.unwrap();
                    }
                }
            });
        }
    });
    (port, received_text)
}

/// A HelloRetryRequest in two records, as far as anybody here reads it, and what servers send after it to please middleboxes.
fn retry() -> Vec<u8> {
    let message = [&[2, 0, 0, 34, 3, 3], &RETRY_RANDOM[..]].concat();
    let (one, two) = message.split_at(20);
    let head = |len: usize| [22, 3, 3, 0, len as u8];
    let records = [&head(one.len())[..], one, &head(two.len()), two];
    [&records.concat()[..], CHANGE_CIPHER_SPEC].concat()
}

const CHANGE_CIPHER_SPEC: &[u8] = &[20, 3, 3, 0, 1, 1];

fn has(received_text: &Arc<std::sync::Mutex<Vec<u8>>>, name: &str) -> bool {
    let received_text = received_text.lock().unwrap();
    received_text
        .windows(name.len())
        .any(|window| window == name.as_bytes())
}

#[tokio::test]
async fn a_second_hello_for_another_name_goes_nowhere() {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let names = NameServer::with_records(vec![address_record("good.test.", loopback)]).await;
    let (port, received_text) = retrying_site().await;
    let mut env = env(only(&["good.test"]), &names, &["good.test"]).await;
    let second = [CHANGE_CIPHER_SPEC, &hello("evil.test")].concat();
    for is_sent_at_once in [false, true] {
        let mut program = env.agent.connect("good.test", port).await;
        let first = hello("good.test");
        if is_sent_at_once {
            program
                .write_all(&[&first[..], &second].concat())
                .await
                .unwrap();
        } else {
            program.write_all(&first).await.unwrap();
            program
                .read_exact(&mut vec![0; retry().len()])
                .await
                .unwrap();
            program.write_all(&second).await.unwrap();
        }
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(TIMEOUT, program.read_to_end(&mut rest));
        let error = ended.await.expect("the connection ends").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert_eq!(denied(env.flow().await), "name_mismatch");
    }
    assert!(has(&received_text, "good.test") && !has(&received_text, "evil.test"));
}

#[tokio::test]
async fn a_second_hello_for_the_same_name_and_what_follows_goes_through() {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let names = NameServer::with_records(vec![address_record("good.test.", loopback)]).await;
    let (port, received_text) = retrying_site().await;
    let mut env = env(only(&["good.test"]), &names, &["good.test"]).await;
    let mut program = env.agent.connect("good.test", port).await;
    let first = hello("good.test");
    let early = [&[23, 3, 3, 0, 5][..], b"early"].concat();
    let second = [
        CHANGE_CIPHER_SPEC,
        &hello("good.test"),
        b"\x17\x03\x03\x00\x05after",
    ]
    .concat();
    program
        .write_all(&[&first[..], &early].concat())
        .await
        .unwrap();
    program
        .read_exact(&mut vec![0; retry().len()])
        .await
        .unwrap();
    program.write_all(&second).await.unwrap();
    program.shutdown().await.unwrap();
    assert_eq!(env.flow().await.denial, None);
    assert_eq!(
        *received_text.lock().unwrap(),
        [first, early, second].concat()
    );
}

#[tokio::test]
async fn a_server_that_wants_no_second_hello_gets_everything() {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let names = NameServer::with_records(vec![address_record("good.test.", loopback)]).await;
    let (port, received_text) = site().await;
    let mut env = env(only(&["good.test"]), &names, &["good.test"]).await;
    let mut program = env.agent.connect("good.test", port).await;
    let reply_bytes = [&hello("good.test")[..], b"\x17\x03\x03\x00\x05early"].concat();
    program.write_all(&reply_bytes).await.unwrap();
    program.shutdown().await.unwrap();
    assert_eq!(env.flow().await.denial, None);
    assert_eq!(*received_text.lock().unwrap(), reply_bytes);
}

#[tokio::test]
async fn every_request_on_a_connection_by_address_is_judged_by_its_host() {
    let names = NameServer::with_records(Vec::new()).await;
    let (port, received_text) = site().await;
    let policy = NetworkPolicy {
        deny_out: targets(&["evil.test"]),
        ..NetworkPolicy::default()
    };
    let by_operator = |settings: &mut crate::GatewaySettings| {
        settings.reachable = targets(&["127.0.0.1"]);
        settings.denied = targets(&["evil.test"]);
    };
    for mut env in [
        env(policy, &names, &["127.0.0.1"]).await,
        TestEnv::with(NetworkPolicy::default(), by_operator).await,
    ] {
        let mut program = env.agent.connect("127.0.0.1", port).await;
        for host in [format!("127.0.0.1:{port}"), "other.test".to_owned()] {
            request(&mut program, &host).await;
            let mut answer = Vec::new();
            while !answer.ends_with(b"ok") {
                answer.push(program.read_u8().await.unwrap());
            }
        }
        request(&mut program, "evil.test").await;
        let mut answer = String::new();
        let ended = tokio::time::timeout(TIMEOUT, program.read_to_string(&mut answer));
        let _ = ended.await.expect("the connection ends");
        assert!(answer.starts_with("HTTP/1.1 421 "), "{answer}");
        let code = denied(env.flow().await);
        assert!(code.starts_with("denied_by_"), "{code}");
    }
    assert!(has(&received_text, "other.test") && !has(&received_text, "evil.test"));
}
