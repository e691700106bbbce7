//! Many at once: bounded, and none forgotten.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::Resource;

use super::{connect, datagram, query, requester, start};
use crate::common::gateway::Gateway;
use crate::common::{Agent, raise_open_files, wait_until};

/// Prepares something that the agent lets wait for ten seconds at least, but not for ever. Where the machine was too busy for
/// that, it is begun again.
fn in_time<T>(mut prepare: impl FnMut() -> T) -> T {
    let mut prepared = None;
    wait_until("all is there in time", || {
        // What was late is gone before the next begins.
        prepared = None;
        let start_time = Instant::now();
        prepared = Some(prepare());
        start_time.elapsed() < Duration::from_secs(8)
    });
    prepared.unwrap()
}

/// Whether the other side has ended a connection, in whichever way.
fn is_closed(stream: &mut TcpStream) -> bool {
    let read = stream.read(&mut [0]);
    !matches!(read, Err(error) if error.kind() == ErrorKind::WouldBlock)
}

/// Connects to one of the agent's listeners. `None` means that the agent reset the connection, as it may do above its limit.
fn enter(agent: &Agent, listener_address: &str) -> Option<TcpStream> {
    match TcpStream::connect(agent.listener_address(listener_address)) {
        Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
        entered => Some(entered.unwrap()),
    }
}

/// The number of connections that the agent lets wait at one listener: at most a quarter of the files that it may open.
fn share(max_waiting: usize) -> usize {
    let limit = rustix::process::getrlimit(Resource::Nofile).maximum;
    max_waiting.min(usize::try_from(limit.unwrap_or(16 * 1024).min(16 * 1024) / 4).unwrap())
}

#[test]
fn a_slow_gateway_gets_all_connections_in_the_end() {
    const COUNT: usize = 1350;
    raise_open_files();
    // More than fit into the channel; the gateway reads only after the last of them, and is given up when that takes too long.
    let (agent, before, mut gateway, mut programs) = in_time(|| {
        let agent = start();
        let gateway = Gateway::attach(&agent);
        let before = agent.resident_kib();
        let ask = |number: usize| {
            let mut program = connect(&agent);
            let request = format!("CONNECT h{number}:80 HTTP/1.1\r\n\r\n{number}");
            program.write_all(request.as_bytes()).unwrap();
            program
        };
        let programs: Vec<_> = (0..COUNT).map(ask).collect();
        (agent, before, gateway, programs)
    });
    assert!(agent.resident_kib() < before + 16 * 1024);
    let mut seen = vec![false; COUNT];
    for _ in 0..COUNT {
        let mut opened = gateway.next_connection();
        let number: usize = opened.host[1..].parse().unwrap();
        assert!(!std::mem::replace(&mut seen[number], true));
        let mut received = opened.early.to_vec();
        let expected = number.to_string();
        while received.len() < expected.len() {
            let mut byte = [0];
            opened.connection.read_exact(&mut byte).unwrap();
            received.extend(byte);
        }
        assert_eq!(received, expected.as_bytes());
        opened.connection.write_all(b"!").unwrap();
        // Each is the program's own.
        let mut answer = [0];
        programs[number].read_exact(&mut answer).unwrap();
    }
    assert!(!gateway.has_descriptors_left());
}

#[test]
fn without_a_gateway_a_limited_number_waits() {
    raise_open_files();
    // A connection that waits for too long gets the answer that there is no gateway.
    let (agent, _asker, _programs, mut gateway) = in_time(|| {
        let agent = start();
        let requester = requester(&agent);
        requester.set_nonblocking(true).unwrap();
        let mut refused = [0; 512];
        wait_until("one query too many", || {
            for id in 0..50 {
                requester.send(&query(id, "waiting", 1)).unwrap();
            }
            requester.recv(&mut refused).is_ok()
        });
        assert_eq!(refused[3] & 0xf, 2);
        let mut programs = Vec::new();
        wait_until("one connection too many", || {
            for _ in 0..50 {
                let Some(mut program) = enter(&agent, "proxy") else {
                    return true;
                };
                // Those too many are reset, maybe before this.
                let _ = program.write_all(b"CONNECT waiting:1 HTTP/1.1\r\n\r\n");
                program.set_nonblocking(true).unwrap();
                programs.push(program);
            }
            programs.iter_mut().any(is_closed)
        });
        let gateway = Gateway::attach(&agent);
        (agent, requester, programs, gateway)
    });
    let (mut queries, mut connections) = (0, 0);
    let last = super::requester(&agent);
    let mark = query(9, "mark", 1);
    while queries < 1024 || connections < share(1024) {
        match gateway.next() {
            sandyard_wire::egress::FromAgent::Query { packet, .. } => {
                queries += 1;
                assert_ne!(packet, mark);
            }
            _ => connections += 1,
        }
    }
    assert_eq!((queries, connections), (1024, share(1024)));
    // No more than those waited. While none of them is answered the next has to wait, so they are.
    for id in 1..=1024 {
        let packet = query(0, "waiting", 1).into();
        gateway.say(&sandyard_wire::egress::ToAgent::Answer { id, packet });
    }
    last.send(&mark).unwrap();
    let query_sent = gateway.query();
    assert_eq!(query_sent.packet, mark);
    gateway.answer(&query_sent, mark.clone());
    assert_eq!(datagram(&last), mark);
}

#[test]
fn connections_that_look_names_up_are_counted() {
    raise_open_files();
    // One that says nothing for too long is closed.
    let (agent, _held, attempts) = in_time(|| {
        let agent = start();
        let mut held = Vec::new();
        let mut attempts = 0;
        wait_until("one too many", || {
            attempts += 1;
            let Some(stream) = enter(&agent, "names-tcp") else {
                return true;
            };
            stream.set_nonblocking(true).unwrap();
            held.push(stream);
            held.iter_mut().any(is_closed)
        });
        (agent, held, attempts)
    });
    assert!(attempts > share(256));
    assert!(agent.is_healthy());
}
