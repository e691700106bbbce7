//! Programs' questions and what they get.

use std::net::Ipv4Addr;

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::opt::{EdnsCode, EdnsOption};
use hickory_proto::rr::rdata::{MX, PTR, SRV, TXT};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use sandyard_core::network::Denial;

use super::super::testing::{NameServer, names_without_servers, reply_to};
use super::super::{Answer, LookupError, Names};
use super::{alias, name, v4, v6};

const STAND_IN: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 9);

fn question(of: &str, kind: RecordType) -> Message {
    let mut message = Message::new(4711, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(name(of), kind));
    message
}

fn with_edns(of: &str, kind: RecordType) -> Message {
    let mut message = question(of, kind);
    let mut edns = Edns::new();
    edns.set_max_payload(1232);
    message.set_edns(edns);
    message
}

fn anything(_: &str) -> Result<(), Denial> {
    Ok(())
}

fn denied(name: &str) -> Result<(), Denial> {
    Err(Denial::NotAllowed {
        target: name.to_owned(),
    })
}

async fn ask(names: &Names, message: &Message) -> (Message, Answer) {
    let packet = message.to_vec().unwrap();
    let answer = names.answer(&packet, Some(STAND_IN), false, anything).await;
    (Message::from_vec(&answer.packet).unwrap(), answer)
}

#[tokio::test]
async fn an_address_that_stands_for_the_name_is_the_answer() {
    let server = NameServer::with_records(vec![v4("example.com.", "192.0.2.1")]).await;
    let query_sent = question("ExAmple.com.", RecordType::A);
    let (reply, answer) = ask(&server.names(), &query_sent).await;
    assert_eq!(reply.id, 4711);
    assert_eq!(reply.message_type, MessageType::Response);
    assert_eq!(reply.response_code, ResponseCode::NoError);
    assert!(reply.recursion_desired && reply.recursion_available && !reply.authoritative);
    assert!(
        reply.queries[0]
            .name()
            .eq_case(query_sent.queries[0].name())
    );
    assert!(reply.edns.is_none());
    let [record] = reply.answers.as_slice() else {
        panic!("{reply}");
    };
    assert_eq!(record.data, RData::A(STAND_IN.into()));
    assert_eq!(
        (record.ttl, &record.name),
        (30, query_sent.queries[0].name())
    );
    assert_eq!(answer.name.as_deref(), Some("example.com"));
    assert!(answer.denial.is_none() && answer.failure.is_none());
}

#[tokio::test]
async fn a_name_with_ipv6_alone_has_a_stand_in_and_never_an_ipv6_address() {
    let server = NameServer::with_records(vec![v6("six.example.", "2001:db8::1")]).await;
    let names = server.names();
    let (reply, _) = ask(&names, &question("six.example.", RecordType::A)).await;
    assert_eq!(reply.answers.len(), 1);
    let (reply, answer) = ask(&names, &question("six.example.", RecordType::AAAA)).await;
    assert_eq!(reply.response_code, ResponseCode::NoError);
    assert!(reply.answers.is_empty() && answer.failure.is_none());
}

#[tokio::test]
async fn a_missing_name_differs_from_a_missing_record() {
    let text = Record::from_rdata(
        name("text.example."),
        60,
        RData::TXT(TXT::new(vec!["x".into()])),
    );
    let server = NameServer::with_records(vec![text]).await;
    let names = server.names();
    for kind in [RecordType::A, RecordType::AAAA, RecordType::MX] {
        let (reply, answer) = ask(&names, &question("missing.example.", kind)).await;
        assert_eq!(reply.response_code, ResponseCode::NXDomain, "{kind}");
        assert_eq!(answer.failure, Some(LookupError::NoSuchName));
        let (reply, answer) = ask(&names, &question("text.example.", kind)).await;
        assert_eq!(reply.response_code, ResponseCode::NoError, "{kind}");
        assert!(reply.answers.is_empty());
        let fails = kind != RecordType::MX;
        assert_eq!(answer.failure.is_some(), fails, "{kind}");
    }
}

#[tokio::test]
async fn a_denied_name_is_not_looked_up() {
    let server = NameServer::with_records(vec![v4("example.com.", "192.0.2.1")]).await;
    let names = server.names();
    for kind in [
        RecordType::A,
        RecordType::AAAA,
        RecordType::TXT,
        RecordType::HTTPS,
        // Not carried for anybody, but that is no reason to say nothing of it.
        RecordType::ANY,
    ] {
        let packet = with_edns("example.com.", kind).to_vec().unwrap();
        let answer = names.answer(&packet, Some(STAND_IN), true, denied).await;
        let reply = Message::from_vec(&answer.packet).unwrap();
        assert_eq!(reply.response_code, ResponseCode::Refused);
        assert_eq!(answer.denial, denied("example.com").err());
        let edns = reply.edns.unwrap();
        assert_eq!(edns.max_payload(), 4096);
        let Some(EdnsOption::Unknown(15, why)) = edns.option(EdnsCode::from(15)) else {
            panic!("{edns}");
        };
        assert_eq!(why[..2], [0, 15]);
        let text = str::from_utf8(&why[2..]).unwrap();
        assert!(text.contains("`example.com` is not in"), "{text}");
    }
    assert_eq!(server.query_sent(), [""; 0]);
}

#[tokio::test]
async fn without_a_server_a_look_up_fails_unless_a_proxy_knows_more() {
    let names = names_without_servers();
    let query_sent = with_edns("example.com.", RecordType::A);
    let (reply, answer) = ask(&names, &query_sent).await;
    assert_eq!(reply.response_code, ResponseCode::ServFail);
    assert_eq!(answer.failure, Some(LookupError::Unreachable));
    assert!(reply.edns.unwrap().option(EdnsCode::from(15)).is_some());

    let packet = query_sent.to_vec().unwrap();
    let answer = names.answer(&packet, Some(STAND_IN), true, anything).await;
    let reply = Message::from_vec(&answer.packet).unwrap();
    assert_eq!(reply.answers[0].data, RData::A(STAND_IN.into()));
    assert_eq!(answer.failure, None);

    let packet = question("example.com.", RecordType::AAAA).to_vec().unwrap();
    let answer = names.answer(&packet, Some(STAND_IN), true, anything).await;
    let reply = Message::from_vec(&answer.packet).unwrap();
    assert_eq!(
        (reply.response_code, reply.answers.len()),
        (ResponseCode::NoError, 0)
    );
}

#[tokio::test]
async fn without_an_address_to_stand_for_a_name_there_is_no_answer() {
    let server = NameServer::with_records(vec![v4("example.com.", "192.0.2.1")]).await;
    let packet = question("example.com.", RecordType::A).to_vec().unwrap();
    let answer = server.names().answer(&packet, None, false, anything).await;
    let reply = Message::from_vec(&answer.packet).unwrap();
    assert_eq!(reply.response_code, ResponseCode::ServFail);
}

#[tokio::test]
async fn other_records_are_passed_on_with_their_aliases_alone() {
    let target = name("Mail.Example.com.");
    let records = vec![
        alias("example.net.", "example.com."),
        Record::from_rdata(
            name("example.com."),
            86400,
            RData::MX(MX::new(10, target.clone())),
        ),
        Record::from_rdata(
            name("_xmpp._tcp.example.com."),
            5,
            RData::SRV(SRV::new(0, 5, 5222, target)),
        ),
        Record::from_rdata(
            name("8.8.8.8.in-addr.arpa."),
            9,
            RData::PTR(PTR(name("dns.example."))),
        ),
        v4("mail.example.com.", "192.0.2.25"),
    ];
    let server = NameServer::with_records(records.clone()).await;
    let names = server.names();
    let (reply, answer) = ask(&names, &question("example.net.", RecordType::MX)).await;
    let types: Vec<_> = reply.answers.iter().map(Record::record_type).collect();
    assert_eq!(types, [RecordType::CNAME, RecordType::MX]);
    assert_eq!(reply.answers[1].ttl, 60);
    assert!(reply.additionals.is_empty());
    assert_eq!(answer.name.as_deref(), Some("example.net"));

    let (reply, _) = ask(
        &names,
        &question("_xmpp._tcp.example.com.", RecordType::SRV),
    )
    .await;
    assert_eq!(reply.answers[0].data, records[2].data);
    assert!(reply.answers[0].ttl <= 5);
    let (reply, _) = ask(&names, &question("8.8.8.8.in-addr.arpa.", RecordType::PTR)).await;
    assert_eq!(reply.answers[0].data, records[3].data);
    let (reply, _) = ask(&names, &question("example.net.", RecordType::CNAME)).await;
    assert_eq!(reply.answers[0].data, records[0].data);
}

#[tokio::test]
async fn an_answer_is_cut_to_what_is_allowed() {
    let server = NameServer::start(|message, is_tcp| {
        let mut reply = reply_to(message, ResponseCode::NoError);
        if is_tcp {
            let of = message.queries[0].name();
            let bytes = if of == &name("long.example.") {
                250
            } else {
                10
            };
            reply.add_answers((0..60).map(|n| {
                let text = format!("{n:0bytes$}");
                Record::from_rdata(of.clone(), 60, RData::TXT(TXT::new(vec![text])))
            }));
        } else {
            reply.metadata.truncation = true;
        }
        Some(reply)
    })
    .await;
    let names = server.names();
    let (reply, answer) = ask(&names, &with_edns("long.example.", RecordType::TXT)).await;
    assert!(reply.truncation && answer.packet.len() <= 4096);
    assert!(answer.packet.len() > 3800 && reply.edns.is_some());
    let (reply, _) = ask(&names, &question("short.example.", RecordType::TXT)).await;
    assert_eq!(reply.answers.len(), 32);
}

#[tokio::test]
async fn some_questions_are_answered_locally() {
    let server = NameServer::with_records(vec![
        Record::from_rdata(
            name("1.0.0.10.in-addr.arpa."),
            9,
            RData::PTR(PTR(name("secret.corp."))),
        ),
        v4("localhost.", "192.0.2.66"),
    ])
    .await;
    let names = server.names();
    for (of, kind, code, answers) in [
        (
            "1.0.0.10.in-addr.arpa.",
            RecordType::PTR,
            ResponseCode::NXDomain,
            0,
        ),
        (
            "9.0.18.198.in-addr.arpa.",
            RecordType::PTR,
            ResponseCode::NXDomain,
            0,
        ),
        (
            "10.in-addr.arpa.",
            RecordType::SOA,
            ResponseCode::NXDomain,
            0,
        ),
        ("example.com.", RecordType::HTTPS, ResponseCode::NoError, 0),
        ("example.com.", RecordType::SVCB, ResponseCode::NoError, 0),
        ("example.com.", RecordType::ANY, ResponseCode::NotImp, 0),
        ("example.com.", RecordType::AXFR, ResponseCode::NotImp, 0),
        ("example.com.", RecordType::NULL, ResponseCode::NotImp, 0),
        ("localhost.", RecordType::A, ResponseCode::NoError, 1),
        ("db.localhost.", RecordType::AAAA, ResponseCode::NoError, 1),
        ("localhost.", RecordType::MX, ResponseCode::NoError, 0),
        ("192.0.2.1.", RecordType::A, ResponseCode::NXDomain, 0),
        (".", RecordType::NS, ResponseCode::NoError, 0),
    ] {
        let (reply, _) = ask(&names, &question(of, kind)).await;
        assert_eq!(reply.response_code, code, "{of} {kind}");
        assert_eq!(reply.answers.len(), answers, "{of} {kind}");
    }
    assert_eq!(server.query_sent(), [""; 0]);
}

#[tokio::test]
async fn a_name_that_no_host_can_have_does_not_exist() {
    let server = NameServer::with_records(Vec::new()).await;
    let names = server.names();
    for label in [
        &b"sp ace"[..],
        b"do.t",
        b"back\\slash",
        b"\xff\x00",
        b"caf\xc3\xa9",
    ] {
        let mut message = question("example.", RecordType::A);
        let unusual_name = Name::from_labels([label, &b"example"[..]]).unwrap();
        message.queries[0].set_name(unusual_name.clone());
        let (reply, answer) = ask(&names, &message).await;
        assert_eq!(reply.response_code, ResponseCode::NXDomain);
        assert_eq!(reply.queries[0].name(), &unusual_name);
        assert_eq!(answer.name, None);
    }
    assert_eq!(server.query_sent(), [""; 0]);
}

#[tokio::test]
async fn what_is_no_single_question_of_the_internet_is_turned_away() {
    let names = names_without_servers();
    let good = question("example.com.", RecordType::A);

    let mut two = good.clone();
    two.add_query(Query::query(name("example.net."), RecordType::A));
    let mut none = good.clone();
    none.queries.clear();
    let mut answers = good.clone();
    answers.add_answer(v4("example.com.", "192.0.2.1"));
    for message in [two, none, answers] {
        let (reply, _) = ask(&names, &message).await;
        assert_eq!(
            (reply.response_code, reply.id),
            (ResponseCode::FormErr, 4711)
        );
    }

    let mut update = good.clone();
    update.metadata.op_code = OpCode::Update;
    let mut chaos = good.clone();
    chaos.queries[0].set_query_class(DNSClass::CH);
    for message in [update, chaos] {
        let (reply, _) = ask(&names, &message).await;
        assert_eq!(
            (reply.response_code, reply.id),
            (ResponseCode::NotImp, 4711)
        );
        assert_eq!(reply.op_code, message.op_code);
    }

    let mut newer = with_edns("example.com.", RecordType::A);
    newer.edns.as_mut().unwrap().set_version(1);
    let (reply, _) = ask(&names, &newer).await;
    // The number has two meanings, of which this is the one without a signature.
    assert_eq!(
        u16::from(reply.response_code),
        u16::from(ResponseCode::BADVERS)
    );

    let reply = good.into_response().to_vec().unwrap();
    for packet in [&reply[..], &[], &[0; 11]] {
        let answer = names.answer(packet, None, false, anything).await;
        assert_eq!(answer.packet, [0; 0]);
    }
}
