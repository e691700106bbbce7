//! Look-ups of names.

use std::io::Write as _;
use std::net::{Ipv4Addr, Shutdown, TcpStream};

use super::{datagram, exactly, query, requester, rest, start};
use crate::common::gateway::Gateway;
use crate::common::{Agent, TIMEOUT};

fn connect(agent: &Agent) -> TcpStream {
    let stream = TcpStream::connect(agent.listener_address("names-tcp")).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

fn framed(message: &[u8]) -> Vec<u8> {
    let length = u16::try_from(message.len()).unwrap();
    [&length.to_be_bytes()[..], message].concat()
}

fn next(stream: &mut TcpStream) -> Vec<u8> {
    let length = exactly(stream, 2);
    exactly(
        stream,
        usize::from(u16::from_be_bytes([length[0], length[1]])),
    )
}

/// An answer of `length` bytes whose number belongs to no query.
fn answer(query: &[u8], length: usize) -> Vec<u8> {
    let mut answer = query.to_vec();
    answer[..3].copy_from_slice(&[0, 0, 0x81]);
    answer[7] = 9;
    answer.resize(length.max(query.len()), 0x55);
    answer
}

#[test]
fn each_name_gets_an_address_of_its_own_and_keeps_it() {
    let agent = start();
    let mut gateway = Gateway::attach(&agent);
    let requester = requester(&agent);
    let mut ask = |id: u16, name: &str, kind: u16| {
        let query = query(id, name, kind);
        requester.send(&query).unwrap();
        let query_sent = gateway.query();
        assert_eq!(query_sent.packet, query);
        let answer = answer(&query, 0);
        gateway.answer(&query_sent, answer.clone());
        let mut received = datagram(&requester);
        assert_eq!(received[..2], query[..2], "the asker's own number");
        received[..2].copy_from_slice(&answer[..2]);
        assert_eq!(received, answer);
        query_sent.address
    };
    assert_eq!(ask(7, "example.com", 1), Some(Ipv4Addr::new(198, 18, 0, 2)));
    assert_eq!(
        ask(0xffff, "example.org", 1),
        Some(Ipv4Addr::new(198, 18, 0, 3))
    );
    assert_eq!(ask(8, "EXAMPLE.com", 1), Some(Ipv4Addr::new(198, 18, 0, 2)));
    assert_eq!(ask(9, "example.com", 28), None);
    assert_eq!(ask(9, "a b", 1), None);
}

#[test]
fn answers_reach_their_queries_in_any_order() {
    let agent = start();
    let mut gateway = Gateway::attach(&agent);
    let askers: Vec<_> = (0..50).map(|_| requester(&agent)).collect();
    for (number, requester) in askers.iter().enumerate() {
        requester.send(&query(1, &format!("n{number}"), 1)).unwrap();
    }
    let mut query_sent: Vec<_> = askers.iter().map(|_| gateway.query()).collect();
    query_sent.sort_by_key(|query| std::cmp::Reverse(query.id));
    query_sent.dedup_by_key(|query| query.id);
    assert_eq!(query_sent.len(), askers.len(), "numbers are unique");
    for query in &query_sent {
        gateway.answer(query, query.packet.clone());
    }
    for (number, requester) in askers.iter().enumerate() {
        assert_eq!(datagram(requester), query(1, &format!("n{number}"), 1));
    }
}

#[test]
fn garbage_is_dropped_or_refused_without_harm() {
    let agent = start();
    let mut gateway = Gateway::attach(&agent);
    let requester = requester(&agent);
    let good = query(5, "example.com", 1);
    let with = |at: usize, value: u8| {
        let mut bad = good.clone();
        bad[at] = value;
        bad
    };
    // No queries at all: the next answer is for the one after them.
    for nothing in [
        vec![],
        vec![0; 11],
        vec![0xff; 300],
        with(2, 0x80),
        [&good[..], &[0; 5000]].concat(),
    ] {
        requester.send(&nothing).unwrap();
    }
    for (bad, code) in [
        (with(2, 0x10), 4),
        (with(5, 0), 1),
        (with(5, 2), 1),
        (with(12, 0xc0), 1),
        (with(12, 0x3f), 1),
        (good[..good.len() - 1].to_vec(), 1),
        (good[..12].to_vec(), 1),
        ([&good[..12], &b"\x01a".repeat(500)].concat(), 1),
    ] {
        requester.send(&bad).unwrap();
        let refused = datagram(&requester);
        assert_eq!((refused.len(), refused[3] & 0xf), (12, code), "{bad:?}");
        assert_eq!((&refused[..2], refused[2] & 0x80), (&bad[..2], 0x80));
    }
    requester.send(&good).unwrap();
    let query_sent = gateway.query();
    assert_eq!(query_sent.packet, good);
    // An answer that is none is a failure.
    gateway.answer(&query_sent, &b"short"[..]);
    let failed = datagram(&requester);
    assert_eq!((failed[3] & 0xf, &failed[12..]), (2, &good[12..]));
}

#[test]
fn long_answers_are_cut_for_datagrams_and_come_whole_by_tcp() {
    let agent = start();
    let mut gateway = Gateway::attach(&agent);
    let requester = requester(&agent);
    let plain = query(1, "example.com", 16);
    let mut extended = plain.clone();
    extended[11] = 1;
    extended.extend([0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0]);
    for (query, length, is_cut) in [
        (&plain, 512, false),
        (&plain, 513, true),
        (&extended, 1232, false),
        (&extended, 1233, true),
    ] {
        requester.send(query).unwrap();
        let query_sent = gateway.query();
        gateway.answer(&query_sent, answer(query, length));
        let received = datagram(&requester);
        assert_eq!(received[2] & 2 != 0, is_cut, "{length}");
        let expected = if is_cut { plain.len() } else { length };
        assert_eq!(
            (received.len(), received[7]),
            (expected, if is_cut { 0 } else { 9 })
        );
    }
    let mut stream = connect(&agent);
    stream.write_all(&framed(&plain)).unwrap();
    let query_sent = gateway.query();
    gateway.answer(&query_sent, answer(&plain, 4096));
    assert_eq!(next(&mut stream).len(), 4096);
}

#[test]
fn several_queries_come_over_one_connection() {
    let agent = start();
    let mut gateway = Gateway::attach(&agent);
    let mut stream = connect(&agent);
    let queries: Vec<_> = (0..3)
        .map(|id| query(id, &format!("n{id}.example"), 1))
        .collect();
    let all: Vec<u8> = queries.iter().flat_map(|query| framed(query)).collect();
    // All at once, and cut at odd places.
    for piece in all.chunks(5) {
        stream.write_all(piece).unwrap();
    }
    for query in &queries {
        let query_sent = gateway.query();
        assert_eq!(query_sent.packet, query);
        assert!(query_sent.address.is_some());
        gateway.answer(&query_sent, query.clone());
        assert_eq!(next(&mut stream), *query);
    }
    let mut bad = queries[0].clone();
    bad[5] = 0;
    stream.write_all(&framed(&bad)).unwrap();
    assert_eq!(next(&mut stream)[3] & 0xf, 1);
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(rest(&mut stream), b"");
}

#[test]
fn connections_with_anything_but_queries_are_closed() {
    let agent = start();
    let mut gateway = Gateway::attach(&agent);
    for garbage in [
        &b"\xff\xff\0\0\0"[..],
        b"\0\0",
        b"\0\x05hello",
        b"\0\x0c\0\0\x80\0\0\0\0\0\0\0\0\0",
    ] {
        let mut stream = connect(&agent);
        stream.write_all(garbage).unwrap();
        // Closed with bytes unread is a reset.
        let mut rest = Vec::new();
        let _ = std::io::Read::read_to_end(&mut stream, &mut rest);
        assert_eq!(rest, b"", "{garbage:?}");
    }
    let mut stream = connect(&agent);
    stream.write_all(&framed(&query(1, "x", 1))).unwrap();
    let query_sent = gateway.query();
    gateway.answer(&query_sent, query_sent.packet.clone());
    assert_eq!(next(&mut stream), query(1, "x", 1));
}
