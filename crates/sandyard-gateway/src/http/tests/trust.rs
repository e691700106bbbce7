//! Certificates of sites that are no good, and what programs are told.

use rcgen::date_time_ymd;

use super::env::{
    NAME, PLACEHOLDER, SECRET, Sender, TestEnv, host, params, site_authority, site_tls, text,
};
use super::site::{Site, echo};
use crate::http::{Host, HttpFailure, Tls};
use crate::settings::{GatewayError, GatewaySettings};

#[tokio::test]
async fn a_site_without_a_good_certificate_gets_nothing_and_the_program_learns_why() {
    let env = TestEnv::new();
    let protocols = ["h2", "http/1.1"];
    let mut expired = params(NAME);
    expired.not_after = date_time_ymd(2020, 1, 1);
    let foreign = site_tls(&site_authority(), &params(NAME), &protocols);
    let cases = [
        (foreign, "by an authority that this server does not trust"),
        (
            env.site_tls("other.example.com", &protocols),
            "for another name",
        ),
        (env.site_tls_of(&expired, &protocols), "has expired"),
    ];
    for (tls, reason) in cases {
        let site = Site::start(Some(tls), echo).await;
        for (offers, is_two) in [
            (&[][..], false),
            (&["h2", "http/1.1"], false),
            (&["h2"], true),
        ] {
            let (stream, carried) = env.open(site.address, host(), true).await;
            let stream = env.hello(stream, NAME, offers).await.unwrap();
            let mut program = Sender::new(stream, is_two).await;
            let answer = program.get("/", &[("x-key", PLACEHOLDER)]).await;
            assert_eq!(answer.status(), 502);
            let reported = text(&answer);
            assert!(
                reported.starts_with("sandyard gateway: the certificate of `api.example.com` "),
                "{reported}"
            );
            assert!(
                reported.contains(reason) && reported.lines().count() == 1,
                "{reported}"
            );
            drop(program);
            let failure = carried.await.unwrap().unwrap_err();
            assert!(
                matches!(&failure, HttpFailure::Unreachable(text) if text.contains(reason)),
                "{failure:?}"
            );
        }
        assert!(site.seen().is_empty());
    }
}

#[tokio::test]
async fn a_site_without_tls_is_said_to_have_none() {
    let env = TestEnv::new();
    let site = Site::start(None, echo).await;
    let (mut program, carried) = env.program(site.address, false).await;
    let answer = program.get("/", &[("x-key", PLACEHOLDER)]).await;
    assert_eq!(answer.status(), 502);
    assert!(
        text(&answer)
            .starts_with("sandyard gateway: the TLS handshake with `api.example.com` failed: "),
        "{}",
        text(&answer)
    );
    drop(program);
    assert!(carried.await.unwrap().is_err());
}

#[tokio::test]
async fn the_protocol_is_one_that_both_ends_know() {
    let env = TestEnv::new();
    let old = Site::start(Some(env.site_tls(NAME, &["http/1.1"])), echo).await;
    let (stream, _) = env.open(old.address, host(), true).await;
    let stream = env.hello(stream, NAME, &["h2", "http/1.1"]).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    // A program that names none gets the oldest, though the site prefers another.
    let new = Site::start(Some(env.site_tls(NAME, &["h2", "http/1.1"])), echo).await;
    let (stream, _) = env.open(new.address, host(), true).await;
    let stream = env.hello(stream, NAME, &[]).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), None);
    let answer = Sender::new(stream, false).await.get("/", &[]).await;
    assert_eq!(answer.status(), 200);
    // So does one that names the old one alone, of which TLS servers know nothing.
    for site in [&old, &new] {
        let (stream, _) = env.open(site.address, host(), true).await;
        let stream = env.hello(stream, NAME, &["http/1.0"]).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), None);
        let mut program = Sender::new(stream, false).await;
        let answer = program.get("/", &[("x-key", PLACEHOLDER)]).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(site.last().header("x-key"), SECRET);
    }
    // A program that offers only unsupported protocols gets an error.
    for offers in [&["imap"][..], &["h3"]] {
        let (stream, carried) = env.open(new.address, host(), true).await;
        let refused = env.hello(stream, NAME, offers).await.unwrap_err();
        assert!(
            refused.to_string().contains("NoApplicationProtocol"),
            "{refused}"
        );
        assert!(carried.await.unwrap().is_err());
    }
}

#[tokio::test]
async fn a_program_that_does_not_trust_the_gateway_is_named_as_the_reason() {
    let env = TestEnv::new();
    let other = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["http/1.1"])), echo).await;
    let (stream, carried) = env.open(site.address, host(), true).await;
    assert!(other.hello(stream, NAME, &["http/1.1"]).await.is_err());
    let failure = carried.await.unwrap().unwrap_err().to_string();
    assert!(
        failure.contains("rejected the gateway's certificate"),
        "{failure}"
    );
}

#[tokio::test]
async fn hosts_may_be_addresses() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls("127.0.0.1", &["http/1.1"])), echo).await;
    let host = Host {
        name: "127.0.0.1".to_owned(),
        port: site.address.port(),
    };
    let (stream, _) = env.open(site.address, host, true).await;
    let stream = env.hello(stream, "127.0.0.1", &["http/1.1"]).await.unwrap();
    let mut program = Sender::new(stream, false).await;
    let host_header = site.address.to_string();
    assert_eq!(
        program.get("/", &[("host", &host_header)]).await.status(),
        200
    );
}

#[test]
fn a_file_of_authorities_must_hold_some() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trusted.pem");
    let settings = GatewaySettings {
        trusted_ca: Some(path.clone()),
        ..GatewaySettings::new(folder.path())
    };
    let missing = Tls::open(&settings).unwrap_err();
    assert!(matches!(missing, GatewayError::File { .. }), "{missing:?}");
    std::fs::write(&path, "nothing").unwrap();
    let empty = Tls::open(&settings).unwrap_err();
    assert!(matches!(empty, GatewayError::File { .. }), "{empty:?}");
}

#[test]
fn debug_output_does_not_show_the_keys() {
    let env = TestEnv::new();
    assert_eq!(format!("{:?}", env.tls), "Tls { .. }");
    assert!(env.authority_path().exists());
}
