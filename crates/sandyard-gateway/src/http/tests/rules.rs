//! Headers that rules set.

use super::env::{NAME, PLACEHOLDER, SECRET, Sender, TestEnv, grant, host, text};
use super::site::{Site, echo};

#[tokio::test]
async fn rules_set_headers_whatever_the_program_sent() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["h2", "http/1.1"])), echo).await;
    env.set(grant(
        &[("token", PLACEHOLDER, SECRET, NAME)],
        &[
            ("*.example.com", "X-Team", "wide"),
            (NAME, "x-team", "close"),
            (NAME, "Authorization", &format!("Bearer {PLACEHOLDER}")),
            ("www.example.com", "x-never", "1"),
        ],
    ));
    for is_two in [false, true] {
        let (mut program, _) = env.program(site.address, is_two).await;
        let headers = [
            ("x-team", "mine"),
            ("x-team", "mine again"),
            ("authorization", "none"),
        ];
        let answer = program.get("/", &headers).await;
        let seen = site.last();
        let teams: Vec<_> = seen.headers.get_all("x-team").iter().collect();
        assert_eq!(teams, ["close"]);
        assert_eq!(seen.header("authorization"), format!("Bearer {SECRET}"));
        assert!(!seen.headers.contains_key("x-never"));
        assert!(text(&answer).contains(&format!("authorization: Bearer {PLACEHOLDER}\n")));
    }
}

#[tokio::test]
async fn rules_alone_leave_the_rest_of_a_request_as_it_is() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["http/1.1"])), echo).await;
    env.set(grant(&[], &[(NAME, "x-team", "one")]));
    let (mut program, _) = env.program(site.address, false).await;
    program
        .get("/", &[("accept-encoding", "gzip"), ("te", "gzip")])
        .await;
    assert_eq!(site.last().header("accept-encoding"), "gzip");
    assert_eq!(site.last().header("te"), "gzip");
    assert_eq!(site.last().header("x-team"), "one");
}

#[tokio::test]
async fn a_rule_is_for_no_other_port_or_plain_connection() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["http/1.1"])), echo).await;
    for (of, is_set) in [
        ("api.example.com:8443", false),
        ("api.example.com:443", true),
        ("http://api.example.com", true),
    ] {
        env.set(grant(&[], &[(of, "x-team", "one")]));
        let (mut program, _) = env.program(site.address, false).await;
        program.get("/", &[]).await;
        let headers = site.last().headers;
        assert_eq!(headers.contains_key("x-team"), is_set, "{of}");
    }
    let plain = Site::start(None, echo).await;
    for (of, is_set) in [
        (NAME, false),
        ("*.example.com", false),
        ("http://api.example.com:80", false),
        ("http://api.example.com", true),
    ] {
        env.set(grant(&[], &[(of, "x-team", "one")]));
        let (stream, _) = env.open(plain.address, host(), false).await;
        let mut program = Sender::new(stream, false).await;
        program.get("/", &[]).await;
        let headers = plain.last().headers;
        assert_eq!(headers.contains_key("x-team"), is_set, "{of}");
    }
}

#[tokio::test]
async fn a_rule_cannot_say_how_a_request_is_carried() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["http/1.1"])), echo).await;
    for (name, value) in [
        ("Host", "evil.example"),
        ("Content-Length", "7"),
        ("x-bad", "a\r\nb: c"),
    ] {
        env.set(grant(&[], &[(NAME, name, value)]));
        let (mut program, _) = env.program(site.address, false).await;
        let answer = program.get("/", &[]).await;
        assert_eq!(answer.status(), 502, "{name}");
        assert!(
            text(&answer).contains(&format!("`{name}`")),
            "{}",
            text(&answer)
        );
    }
    assert!(site.seen().is_empty());
}
