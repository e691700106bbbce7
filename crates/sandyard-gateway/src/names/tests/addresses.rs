//! Names to addresses.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;

use super::super::LookupError;
use super::super::sources::Settings;
use super::super::testing::{
    NameServer, files_in, from_records, names_with, names_without_servers, reply_to,
};
use super::{alias, v4, v6};

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[tokio::test]
async fn both_families_come_ipv4_first_and_each_address_once() {
    let server = NameServer::with_records(vec![
        v6("example.com.", "2001:db8::1"),
        v4("example.com.", "192.0.2.1"),
        v4("example.com.", "192.0.2.2"),
        v4("example.com.", "192.0.2.1"),
    ])
    .await;
    let found = server.names().addresses("Example.COM.").await.unwrap();
    assert_eq!(found, addresses(&["192.0.2.1", "192.0.2.2", "2001:db8::1"]));
}

#[tokio::test]
async fn aliases_are_followed_to_their_end() {
    let server = NameServer::with_records(vec![
        alias("www.example.com.", "edge.example.net."),
        alias("edge.example.net.", "host.example.org."),
        v4("host.example.org.", "192.0.2.7"),
    ])
    .await;
    let found = server.names().addresses("www.example.com").await.unwrap();
    assert_eq!(found, addresses(&["192.0.2.7"]));
}

#[tokio::test]
async fn aliases_that_the_server_does_not_follow_are_asked_for() {
    let server = NameServer::start(|message, _| {
        let records = [
            alias("www.example.com.", "host.example.org."),
            v4("host.example.org.", "192.0.2.7"),
        ];
        let mut reply = from_records(message, &records);
        reply.answers.truncate(1);
        Some(reply)
    })
    .await;
    let found = server.names().addresses("www.example.com").await.unwrap();
    assert_eq!(found, addresses(&["192.0.2.7"]));
}

/// A server whose names lead elsewhere after the switch, and where all names exist then.
async fn start_changing(seconds: u32) -> (NameServer, Arc<AtomicBool>) {
    let switch = Arc::new(AtomicBool::new(false));
    let is_changed = switch.clone();
    let server = NameServer::start(move |message, _| {
        let is_changed = is_changed.load(Ordering::Relaxed);
        let (now, missing) = if is_changed {
            ("192.0.2.2", "missing.example.")
        } else {
            ("192.0.2.1", "other.example.")
        };
        let mut records = [v4("example.com.", now), v4(missing, now)];
        records[0].ttl = seconds;
        Some(from_records(message, &records))
    })
    .await;
    (server, switch)
}

#[tokio::test]
async fn what_is_kept_is_not_asked_for_again() {
    let (server, switch) = start_changing(60).await;
    let names = server.names();
    let found = names.addresses("example.com").await;
    let missing = names.addresses("missing.example").await;
    assert_eq!(found, Ok(addresses(&["192.0.2.1"])));
    assert_eq!(missing, Err(LookupError::NoSuchName));
    switch.store(true, Ordering::Relaxed);
    assert_eq!(names.addresses("example.com").await, found);
    assert_eq!(names.clone().addresses("missing.example").await, missing);
}

#[tokio::test]
async fn what_must_not_be_kept_is_asked_for_again() {
    let (server, switch) = start_changing(0).await;
    let names = server.names();
    let found = names.addresses("example.com").await;
    assert_eq!(found, Ok(addresses(&["192.0.2.1"])));
    switch.store(true, Ordering::Relaxed);
    let found = names.addresses("example.com").await;
    assert_eq!(found, Ok(addresses(&["192.0.2.2"])));
}

#[tokio::test]
async fn look_ups_at_the_same_time_are_one() {
    // Not even an answer that must not be kept is asked for twice at once.
    let (server, _) = start_changing(0).await;
    let names = server.names();
    let found = join_all((0..20).map(|_| names.addresses("example.com"))).await;
    let expected = Ok(addresses(&["192.0.2.1"]));
    assert!(found.iter().all(|it| *it == expected), "{found:?}");
    let mut query_sent = server.query_sent();
    query_sent.sort();
    assert_eq!(query_sent, ["example.com. A", "example.com. AAAA"]);
}

#[tokio::test]
async fn a_name_without_addresses_is_no_name_and_neither_is_an_address() {
    let server = NameServer::with_records(vec![alias("alone.example.", "nowhere.example.")]).await;
    let names = server.names();
    for name in [
        "missing.example",
        "alone.example",
        "192.0.2.1",
        "",
        "a..b",
        "ex ample.com",
    ] {
        let found = names.addresses(name).await;
        assert_eq!(found, Err(LookupError::NoSuchName), "{name}");
    }
    assert!(
        !server
            .query_sent()
            .iter()
            .any(|line| line.contains("192.0.2.1"))
    );
}

#[tokio::test]
async fn a_single_word_is_asked_for_as_it_is() {
    let server = NameServer::with_records(vec![v4("registry.", "192.0.2.3")]).await;
    let found = server.names().addresses("registry").await.unwrap();
    assert_eq!(found, addresses(&["192.0.2.3"]));
    assert!(
        server
            .query_sent()
            .iter()
            .all(|line| line.starts_with("registry. "))
    );
}

#[tokio::test]
async fn localhost_is_answered_locally() {
    let server = NameServer::with_records(vec![v4("localhost.", "192.0.2.66")]).await;
    let names = server.names();
    for name in ["localhost", "LocalHost.", "api.localhost"] {
        let found = names.addresses(name).await.unwrap();
        assert_eq!(found, addresses(&["127.0.0.1", "::1"]));
    }
    assert_eq!(server.query_sent(), [""; 0]);
}

#[tokio::test]
async fn an_answer_that_does_not_fit_comes_by_tcp() {
    let server = NameServer::start(|message, is_tcp| {
        let mut reply = from_records(message, &[v4("example.com.", "192.0.2.1")]);
        if !is_tcp {
            reply.answers.clear();
            reply.metadata.truncation = true;
        }
        Some(reply)
    })
    .await;
    let found = server.names().addresses("example.com").await.unwrap();
    assert_eq!(found, addresses(&["192.0.2.1"]));
}

#[tokio::test]
async fn a_silent_server_times_out() {
    let server = NameServer::start(|_, _| None).await;
    let names = names_with(Settings {
        name_servers: vec![server.at],
        timeout: Duration::from_secs(1),
        ..files_in("/nonexistent".into())
    });
    let found = names.addresses("example.com").await;
    assert_eq!(found, Err(LookupError::Unreachable));
    // The server runs on this thread, and may not have had its turn.
    let received_text = async {
        while !server
            .query_sent()
            .contains(&"example.com. AAAA".to_owned())
        {
            tokio::task::yield_now().await;
        }
    };
    let received_text = tokio::time::timeout(Duration::from_secs(60), received_text).await;
    received_text.expect("it was asked");
}

#[tokio::test]
async fn a_server_that_is_silent_for_ipv6_does_not_hold_ipv4_up() {
    let server = NameServer::start(|message, _| {
        let is_v6 = message.queries[0].query_type() == RecordType::AAAA;
        (!is_v6).then(|| from_records(message, &[v4("example.com.", "192.0.2.1")]))
    })
    .await;
    let names = names_with(Settings {
        name_servers: vec![server.at],
        // Were the second family waited for, this would be too long for any test.
        timeout: Duration::from_secs(3600),
        ..files_in("/nonexistent".into())
    });
    let found = names.addresses("example.com").await.unwrap();
    assert_eq!(found, addresses(&["192.0.2.1"]));
}

#[tokio::test]
async fn servers_that_refuse_or_fail_are_as_good_as_silent() {
    for code in [ResponseCode::Refused, ResponseCode::ServFail] {
        let server = NameServer::start(move |message, _| Some(reply_to(message, code))).await;
        let found = server.names().addresses("example.com").await;
        assert_eq!(found, Err(LookupError::Unreachable), "{code}");
    }
    let found = names_without_servers().addresses("example.com").await;
    assert_eq!(found, Err(LookupError::Unreachable));
}

#[tokio::test]
async fn records_of_other_names_in_an_answer_do_not_count() {
    let server = NameServer::start(|message, _| {
        let mut reply = from_records(message, &[v4("example.com.", "192.0.2.1")]);
        reply.add_answer(v4("bank.example.", "192.0.2.66"));
        reply.add_additional(v4("example.com.", "192.0.2.67"));
        Some(reply)
    })
    .await;
    let names = server.names();
    let found = names.addresses("example.com").await.unwrap();
    assert_eq!(found, addresses(&["192.0.2.1"]));
    // And they are not kept for when that name is asked for.
    let found = names.addresses("bank.example").await.unwrap();
    assert_eq!(found, addresses(&["192.0.2.66"]));
}

#[tokio::test]
async fn a_fast_server_that_does_not_know_a_name_does_not_win_over_one_that_does() {
    let without_records = NameServer::with_records(Vec::new()).await;
    let inner = NameServer::with_records(vec![
        v4("git.corp.example.", "192.0.2.5"),
        v4("registry.corp.example.", "192.0.2.5"),
        v4("wiki.corp.example.", "192.0.2.5"),
    ])
    .await;
    let names = names_with(Settings {
        name_servers: vec![without_records.at, inner.at],
        ..files_in("/nonexistent".into())
    });
    for host in ["git", "registry", "wiki"] {
        let found = names.addresses(&format!("{host}.corp.example")).await;
        assert_eq!(found.unwrap(), addresses(&["192.0.2.5"]));
    }
    let missing = names.addresses("missing.example").await;
    assert_eq!(missing, Err(LookupError::NoSuchName));
}
