//! The whole way out but for the last piece: a gateway of the test's own, attached to a real sandbox's agent.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bytes::Bytes;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use sandyard_core::SandboxId;
use sandyard_wire::egress::{FromAgent, ToAgent, Via, decode, encode};

use crate::network::create_proxied;
use crate::test_env::TestEnv;

const TIMEOUT: Duration = Duration::from_secs(120);

/// The gateway's end of the channel.
struct Gateway {
    stream: UnixStream,
    received: Vec<u8>,
    descriptors: VecDeque<OwnedFd>,
}

impl Gateway {
    fn attach(env: &TestEnv, id: &SandboxId) -> Self {
        let socket = env.data.join("run").join(id.as_str()).join("agent.sock");
        let stream = UnixStream::connect(socket).expect("the agent's door");
        stream.set_read_timeout(Some(TIMEOUT)).expect("timeout");
        let ask = "GET /egress HTTP/1.1\r\nHost: agent\r\nConnection: Upgrade\r\nUpgrade: sandyard-egress\r\n\r\n";
        (&stream).write_all(ask.as_bytes()).expect("ask");
        let mut gateway = Self {
            stream,
            received: Vec::new(),
            descriptors: VecDeque::new(),
        };
        let end = loop {
            let end = gateway
                .received
                .windows(4)
                .position(|four| four == b"\r\n\r\n");
            match end {
                Some(end) => break end + 4,
                None => gateway.receive(),
            }
        };
        let head: Vec<u8> = gateway.received.drain(..end).collect();
        assert!(
            head.starts_with(b"HTTP/1.1 101"),
            "{}",
            String::from_utf8_lossy(&head)
        );
        gateway.say(&ToAgent::Lead);
        gateway
    }

    fn receive(&mut self) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut bytes = vec![0; 65536];
        let mut buffers = [IoSliceMut::new(&mut bytes)];
        let got = rustix::net::recvmsg(
            &self.stream,
            &mut buffers,
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )
        .expect("a frame in time");
        assert!(got.bytes > 0, "the agent hung up");
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                self.descriptors.extend(descriptors);
            }
        }
        self.received.extend_from_slice(&bytes[..got.bytes]);
    }

    fn say(&mut self, message: &ToAgent) {
        let frame = encode(message).expect("a frame");
        self.stream.write_all(&frame).expect("say");
    }

    /// The next thing the agent says that is no look-up; those are answered.
    fn receive_message(&mut self) -> FromAgent {
        loop {
            match decode::<FromAgent>(&mut self.received).expect("a message") {
                Some(FromAgent::Query {
                    id,
                    address,
                    packet,
                }) => {
                    let packet = answer(&packet, address);
                    self.say(&ToAgent::Answer { id, packet });
                }
                Some(message) => return message,
                None => self.receive(),
            }
        }
    }

    /// The next connection: where to and how, and what was read of it already.
    fn open(&mut self) -> (String, u16, Via, Bytes, File) {
        loop {
            if let FromAgent::Open {
                host,
                port,
                via,
                early,
            } = self.receive_message()
            {
                let connection = self.descriptors.pop_front().expect("a connection");
                return (host, port, via, early, connection.into());
            }
        }
    }
}

/// An answer with that address to a question for one; to any other, that there is none.
fn answer(query: &[u8], address: Option<Ipv4Addr>) -> Bytes {
    let mut end = 12;
    while query[end] != 0 {
        end += 1 + usize::from(query[end]);
    }
    let mut packet = query[..end + 5].to_vec();
    packet[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0]);
    if let Some(address) = address {
        packet[7] = 1;
        packet.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        packet.extend(address.octets());
    }
    packet.into()
}

/// Runs a shell line inside, and the gateway beside it; what the line printed.
async fn with_gateway<T: Send + 'static>(
    env: &TestEnv,
    id: &SandboxId,
    line: &str,
    serve: impl FnOnce(&mut Gateway) -> T + Send + 'static,
) -> (String, T) {
    let mut gateway = Gateway::attach(env, id);
    // Given back, so that it is there until the line has ended.
    let served = tokio::task::spawn_blocking(move || (serve(&mut gateway), gateway));
    let printed = env.out(id, line).await;
    let (result, _gateway) = served.await.expect("the gateway");
    (printed, result)
}

#[tokio::test]
async fn a_program_reaches_the_gateway_by_name_and_by_address() {
    let env = TestEnv::new().await;
    let id = env.create().await.id;
    let fetch = |host: &str| {
        format!(
            "python3 -c 'import socket; s = socket.create_connection((\"{host}\", 4000), 100); print(s.makefile().read())'"
        )
    };
    for host in ["service.test", "9.9.9.9", "2001:db8::1"] {
        let (printed, (name, port, via)) = with_gateway(&env, &id, &fetch(host), |gateway| {
            let (name, port, via, _, mut connection) = gateway.open();
            connection.write_all(b"from outside").expect("write");
            (name, port, via)
        })
        .await;
        assert_eq!((name.as_str(), port, via), (host, 4000, Via::Redirect));
        assert_eq!(printed, "from outside");
    }
    env.finish().await;
}

#[tokio::test]
async fn rejected_packets_are_reported_once_each() {
    let env = TestEnv::new().await;
    let id = env.create().await.id;
    let line = r#"python3 - <<'END'
import socket
def send(family, host, port, times):
    for _ in range(times):
        with socket.socket(family, socket.SOCK_DGRAM) as s:
            s.sendto(b"?", (host, port))
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname())
send(socket.AF_INET, "127.0.0.1", 99, 5)
send(socket.AF_INET6, "::1", 99, 5)
send(socket.AF_INET6, "2001:db8::1", 99, 2)
send(socket.AF_INET, "9.9.9.9", 123, 3)
send(socket.AF_INET, "9.9.9.9", 124, 1)
END"#;
    let (_, reports) = with_gateway(&env, &id, line, |gateway| {
        let mut reports: Vec<(String, u64)> = Vec::new();
        // Those to one place are told at several times if it took the program longer to send them.
        while reports.iter().map(|(_, count)| count).sum::<u64>() < 6 {
            let message = gateway.receive_message();
            let FromAgent::BlockedPackets {
                protocol,
                address,
                port,
                count,
            } = message
            else {
                panic!("{message:?}");
            };
            let place = format!("{protocol} {address} {}", port.unwrap_or(0));
            match reports.iter_mut().find(|(known, _)| *known == place) {
                Some((_, sum)) => *sum += count,
                None => reports.push((place, count)),
            }
        }
        reports.sort();
        reports
    })
    .await;
    let expected = [
        ("17 2001:db8::1 99", 2),
        ("17 9.9.9.9 123", 3),
        ("17 9.9.9.9 124", 1),
    ];
    assert_eq!(
        reports,
        expected.map(|(place, count)| (place.to_owned(), count))
    );
    env.finish().await;
}

#[tokio::test]
async fn without_a_redirect_programs_that_heed_the_variables_reach_the_gateway() {
    let env = TestEnv::new().await;
    let id = create_proxied(&env).await.id;
    let line = "python3 -c 'import socket; print(socket.gethostbyname(\"service.test\"))'; curl -s --max-time 100 http://service.test/path";
    let (printed, (name, port, via, early)) = with_gateway(&env, &id, line, |gateway| {
        let (name, port, via, early, mut connection) = gateway.open();
        let reply =
            "HTTP/1.1 200 OK\r\nContent-Length: 12\r\nConnection: close\r\n\r\nfrom outside";
        connection.write_all(reply.as_bytes()).expect("write");
        (name, port, via, early)
    })
    .await;
    assert_eq!(via, Via::Http);
    assert_eq!((name.as_str(), port), ("service.test", 80));
    assert!(early.starts_with(b"GET /path HTTP/1.1\r\n"), "{early:?}");
    let (address, body) = printed.split_once('\n').expect("two lines");
    assert_eq!(body, "from outside");
    assert!(address.starts_with("198.18."), "{address}");
    env.finish().await;
}
