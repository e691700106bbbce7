//! Which gateway is used, and what becomes of one that breaks or babbles.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use sandyard_wire::egress::{FromAgent, ToAgent, encode};

use super::{ask_for, connect, datagram, query, requester, rest, start};
use crate::common::gateway::{Gateway, Query};
use crate::common::{Agent, wait_until};

/// Lets a gateway say something and waits until the agent has heard it, which the answer to a look-up behind it shows.
fn say_and_be_heard(
    agent: &Agent,
    speaker: &mut Gateway,
    message: &ToAgent,
    query_sent: &mut Gateway,
) {
    let requester = requester(agent);
    requester.send(&query(1, "heard", 1)).unwrap();
    let query_sent = query_sent.query();
    speaker.say(message);
    speaker.answer(&query_sent, query_sent.packet.clone());
    datagram(&requester);
}

fn opened_by(agent: &Agent, host: &str, gateway: &mut Gateway) {
    let _program = ask_for(agent, &format!("{host}:80"));
    assert_eq!(gateway.next_connection().host, host);
}

#[test]
fn the_oldest_leads_until_another_says_so() {
    let agent = start();
    let mut first = Gateway::attach(&agent);
    opened_by(&agent, "alone", &mut first);
    let mut second = Gateway::attach(&agent);
    let mut third = Gateway::attach(&agent);
    opened_by(&agent, "oldest", &mut first);
    say_and_be_heard(&agent, &mut second, &ToAgent::Lead, &mut first);
    opened_by(&agent, "second", &mut second);
    say_and_be_heard(&agent, &mut third, &ToAgent::Lead, &mut second);
    opened_by(&agent, "third", &mut third);
    // The one that led before comes next, then the one that never did.
    drop(third);
    opened_by(&agent, "second-again", &mut second);
    drop(second);
    opened_by(&agent, "oldest-again", &mut first);
}

#[test]
fn bytes_right_behind_the_request_are_not_lost() {
    let agent = start();
    let mut first = Gateway::attach(&agent);
    let lead = encode(&ToAgent::Lead).unwrap();
    let (half, other_half) = lead.split_at(7);
    let mut second = Gateway::attach_with(&agent, &[&lead[..], half].concat());
    // The first is answered, so that both frames of the second were surely read.
    let requester = requester(&agent);
    requester.send(&query(1, "x", 1)).unwrap();
    let query_sent = second.query();
    second.socket.write_all(other_half).unwrap();
    second.answer(&query_sent, query_sent.packet.clone());
    datagram(&requester);
    opened_by(&agent, "second", &mut second);
    drop(second);
    opened_by(&agent, "first", &mut first);
}

#[test]
fn what_programs_want_waits_for_a_gateway() {
    let agent = start();
    let _program = ask_for(&agent, "waited.example:80");
    let requester = requester(&agent);
    requester.send(&query(3, "waited", 1)).unwrap();
    let mut gateway = Gateway::attach(&agent);
    let mut seen = [gateway.next(), gateway.next()];
    seen.sort_by_key(|message| matches!(message, FromAgent::Query { .. }));
    assert!(matches!(&seen[0], FromAgent::Open { host, .. } if host == "waited.example"));
    assert!(matches!(&seen[1], FromAgent::Query { .. }));
}

#[test]
fn without_a_gateway_programs_get_an_error_in_the_end() {
    let agent = start();
    let requester = requester(&agent);
    let query_sent = query(3, "example.com", 1);
    requester.send(&query_sent).unwrap();
    let mut http = ask_for(&agent, "example.com:80");
    let mut socks = connect(&agent);
    socks
        .write_all(b"\x05\x01\0\x05\x01\0\x03\x01a\0\x50")
        .unwrap();
    let failed = datagram(&requester);
    assert_eq!(
        (failed[3] & 0xf, &failed[..2], &failed[12..]),
        (2, &query_sent[..2], &query_sent[12..])
    );
    let answer = String::from_utf8(rest(&mut http)).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert_eq!(rest(&mut socks), [5, 0, 5, 1, 0, 1, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn a_look_up_is_asked_again_when_its_gateway_leaves() {
    let agent = start();
    let mut first = Gateway::attach(&agent);
    let mut second = Gateway::attach(&agent);
    let requester = requester(&agent);
    requester.send(&query(3, "example.com", 1)).unwrap();
    let query_sent: Query = first.query();
    drop(first);
    assert_eq!(second.query(), query_sent);
    second.answer(&query_sent, query_sent.packet.clone());
    assert_eq!(datagram(&requester), query(3, "example.com", 1));
}

#[test]
fn a_gateway_that_says_what_is_no_frame_is_left() {
    let agent = start();
    let mut quiet = Gateway::attach(&agent);
    let framed = |body: &[u8]| {
        let length = u32::try_from(body.len()).unwrap();
        [&length.to_be_bytes()[..], body].concat()
    };
    for babble in [
        b"\xff\xff\xff\xff".to_vec(),
        b"\0\x01\x80\x01".to_vec(),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        framed(b""),
        framed(b"{}"),
        framed(b"null"),
        framed(b"\xff\xfe\xfd\xfc\xfb"),
        framed(br#"{"type":"other"}"#),
        framed(br#"{"type":"answer","id":-1,"packet":""}"#),
        framed(br#"{"type":"answer","id":1,"packet":"%"}"#),
        framed("[".repeat(10_000).as_bytes()),
    ] {
        let mut at_once = Gateway::attach_with(&agent, &babble);
        assert_eq!(at_once.try_next(), None, "{babble:.40?}");
        let mut later = Gateway::attach(&agent);
        later.socket.write_all(&babble).unwrap();
        assert_eq!(later.try_next(), None, "{babble:.40?}");
    }
    opened_by(&agent, "quiet", &mut quiet);
}

#[test]
fn unexpected_answers_and_half_frames_do_no_harm() {
    let agent = start();
    let mut gateway = Gateway::attach(&agent);
    for id in [0, 1, 2, u32::MAX] {
        let packet = vec![0; 60_000].into();
        gateway.say(&ToAgent::Answer { id, packet });
    }
    gateway.socket.write_all(&[0, 1]).unwrap();
    let requester = requester(&agent);
    requester.send(&query(1, "x", 1)).unwrap();
    let query_sent = gateway.query();
    let frame = encode(&ToAgent::Answer {
        id: query_sent.id,
        packet: query_sent.packet.clone(),
    })
    .unwrap();
    // The half frame becomes one of 64 KiB, of blanks and then the answer.
    let length = 0x0001_0000;
    let body = &frame[4..];
    let padded = [&[0, 0][..], &vec![b' '; length - body.len()], body].concat();
    gateway.socket.write_all(&padded).unwrap();
    assert_eq!(datagram(&requester), query(1, "x", 1));
    // The same answer again.
    gateway.socket.write_all(&frame).unwrap();
    opened_by(&agent, "after", &mut gateway);
}

#[test]
fn a_gateway_that_breaks_in_the_middle_of_a_frame_is_replaced() {
    let agent = start();
    let stuck = Gateway::attach(&agent);
    let files = agent.open_files();
    let programs = fill(&agent);
    let mut next = Gateway::attach(&agent);
    drop(stuck);
    // What fitted into the socket went with its gateway; all the others come here, whole and each with its connection.
    let last = ask_for(&agent, "last:1");
    let mut served = Vec::new();
    loop {
        let mut opened = next.next_connection();
        if opened.host == "last" {
            break;
        }
        assert!(opened.early.ends_with(b"x\r\nConnection: close\r\n\r\n"));
        opened.connection.write_all(opened.host.as_bytes()).unwrap();
        served.push(opened.host);
    }
    drop(last);
    wait_until("the agent holds none of them", || {
        agent.open_files() <= files + 1
    });
    let mut lost = 0;
    for (number, mut program) in programs.into_iter().enumerate() {
        let mut response = String::new();
        let _ = program.read_to_string(&mut response);
        match response.as_str() {
            "" => lost += 1,
            host => assert_eq!(host, format!("h{number}")),
        }
    }
    assert!(served.len() > 32, "{} of 64", served.len());
    assert_eq!(served.len() + lost, 64);
    assert!(!next.has_descriptors_left());
}

/// Requests hosts with long names: far more bytes than the channel buffers while the gateway does not read.
fn fill(agent: &Agent) -> Vec<TcpStream> {
    let ask = |number: usize| {
        let mut program = connect(agent);
        let filler = "x".repeat(30_000);
        let request = format!("GET http://h{number}/ HTTP/1.1\r\nA: {filler}\r\n\r\n");
        program.write_all(request.as_bytes()).unwrap();
        program
    };
    (0..64).map(ask).collect()
}

#[test]
fn what_waits_for_a_gateway_that_is_stuck_goes_to_the_one_that_takes_over() {
    let agent = start();
    let stuck = Gateway::attach(&agent);
    let _programs = fill(&agent);
    let mut next = Gateway::attach(&agent);
    next.say(&ToAgent::Lead);
    let mut seen = 0;
    let _last = ask_for(&agent, "last:1");
    while next.next_connection().host != "last" {
        seen += 1;
    }
    assert!(seen > 32, "{seen} of 64");
    drop(stuck);
}

#[test]
fn a_gateway_that_reads_nothing_is_left_in_the_end() {
    let agent = start();
    let mut stuck = Gateway::attach(&agent);
    let _programs = fill(&agent);
    let mut next = Gateway::attach(&agent);
    for _ in 0..32 {
        next.next_connection();
    }
    // What it had whole is still its own; then its channel ends, in the middle of a frame or after one.
    let mut had = 0;
    while stuck.try_next().is_some() {
        had += 1;
    }
    assert!(had > 0);
}

#[test]
fn a_look_up_that_is_not_answered_fails() {
    let agent = start();
    let mut gateway = Gateway::attach(&agent);
    let requester = requester(&agent);
    requester.send(&query(3, "example.com", 1)).unwrap();
    let query_sent = gateway.query();
    assert_eq!(datagram(&requester)[3] & 0xf, 2);
    // Too late is no harm.
    gateway.answer(&query_sent, query_sent.packet.clone());
    opened_by(&agent, "after", &mut gateway);
}

#[test]
fn only_whole_upgrades_attach_and_not_without_end() {
    let agent = start();
    let reply = agent.host().request("GET", "/egress", &[], b"");
    assert_eq!(reply.status, 426);
    let wrong = [("connection", "upgrade"), ("upgrade", "sandyard-dial")];
    assert_eq!(
        agent.host().request("GET", "/egress", &wrong, b"").status,
        426
    );
    let right = [("connection", "upgrade"), ("upgrade", "sandyard-egress")];
    let reply = agent.tcp().request("GET", "/egress", &right, b"");
    assert_eq!(reply.status, 404, "inside there is no such route");
    let mut attached: Vec<_> = (0..64).map(|_| Gateway::attach(&agent)).collect();
    let reply = agent.host().request("GET", "/egress", &right, b"");
    assert_eq!(reply.status, 503);
    attached.truncate(1);
    wait_until("there is room again", || {
        let mut socket = UnixStream::connect(agent.path("agent.sock")).unwrap();
        let head = "GET /egress HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: sandyard-egress\r\n\r\n";
        socket.write_all(head.as_bytes()).unwrap();
        let mut answer = [0; 12];
        socket.read_exact(&mut answer).unwrap();
        answer == *b"HTTP/1.1 101"
    });
    opened_by(&agent, "first", &mut attached[0]);
}

#[test]
fn a_gateway_alone_is_no_activity() {
    let agent = start();
    let _gateway = Gateway::attach(&agent);
    let activity = agent.host().request("GET", "/activity", &[], b"").json();
    assert_eq!(
        (activity.get("requests"), activity.get("streams")),
        (None, None),
        "{activity}"
    );
}
