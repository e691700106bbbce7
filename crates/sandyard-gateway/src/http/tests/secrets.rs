//! Where secrets are put in, and where not.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::env::{NAME, PLACEHOLDER, SECRET, TestEnv, grant, host, text};
use super::site::{Site, echo};
use crate::http::{Host, changes};

#[tokio::test]
async fn a_secret_is_put_in_for_its_host_in_both_versions() {
    let env = TestEnv::new();
    let tls = env.site_tls(NAME, &["h2", "http/1.1"]);
    let site = Site::start(Some(tls), echo).await;
    for is_two in [false, true] {
        let (mut program, _) = env.program(site.address, is_two).await;
        let bearer = format!("Bearer {PLACEHOLDER}");
        let twice = format!("{PLACEHOLDER};{PLACEHOLDER}");
        let headers = [
            ("authorization", bearer.as_str()),
            ("x-api-key", &twice),
            ("x-other", "plain"),
        ];
        let answer = program.get("/path?q=1", &headers).await;
        assert_eq!(answer.status(), 200);
        let seen = site.last();
        assert_eq!(seen.header("authorization"), format!("Bearer {SECRET}"));
        assert_eq!(seen.header("x-api-key"), format!("{SECRET};{SECRET}"));
        assert_eq!(seen.header("x-other"), "plain");
        assert_eq!(seen.header("accept-encoding"), "identity");
        assert_eq!(seen.uri.path_and_query().unwrap(), "/path?q=1");
    }
}

#[tokio::test]
async fn a_secret_is_put_into_what_basic_authorization_encodes() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &[])), echo).await;
    let (mut program, _) = env.program(site.address, false).await;
    for user in ["x-access-token", "", "longer-user"] {
        let credentials = STANDARD.encode(format!("{user}:{PLACEHOLDER}"));
        let sent = STANDARD.encode(format!("{user}:{SECRET}"));
        for (scheme, credentials) in [
            ("Basic", credentials.as_str()),
            ("basic", credentials.trim_end_matches('=')),
        ] {
            let answer = program
                .get(
                    "/",
                    &[("authorization", &format!("{scheme} {credentials}"))],
                )
                .await;
            assert_eq!(
                site.last().header("authorization"),
                format!("{scheme} {sent}")
            );
            // The way back shows what the program said.
            let echoed = format!("authorization: {scheme} {credentials}\n");
            assert!(text(&answer).contains(&echoed), "{}", text(&answer));
            assert_eq!(
                answer.headers()["echo-authorization"],
                format!("{scheme} {credentials}")
            );
        }
    }
}

#[tokio::test]
async fn what_is_no_basic_authorization_with_a_placeholder_stays() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["h2"])), echo).await;
    let (mut program, _) = env.program(site.address, true).await;
    let other = STANDARD.encode("user:password");
    for authorization in [
        format!("Basic {other}"),
        "Basic %%%".to_owned(),
        "Basic".to_owned(),
        "Digest a".to_owned(),
    ] {
        program.get("/", &[("authorization", &authorization)]).await;
        assert_eq!(site.last().header("authorization"), authorization);
    }
}

#[tokio::test]
async fn a_secret_goes_to_no_other_host_port_or_plain_connection() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["http/1.1"])), echo).await;
    for bound in [
        "other.example.com",
        "*.api.example.com",
        "api.example.com:8443",
    ] {
        env.set(grant(&[("token", PLACEHOLDER, SECRET, bound)], &[]));
        let (mut program, _) = env.program(site.address, false).await;
        program.get("/", &[("x-key", PLACEHOLDER)]).await;
        assert_eq!(site.last().header("x-key"), PLACEHOLDER, "{bound}");
    }
    for bound in ["*.example.com", "api.example.com:443"] {
        env.set(grant(&[("token", PLACEHOLDER, SECRET, bound)], &[]));
        let (mut program, _) = env.program(site.address, false).await;
        program.get("/", &[("x-key", PLACEHOLDER)]).await;
        assert_eq!(site.last().header("x-key"), SECRET, "{bound}");
    }
    let plain = Site::start(None, echo).await;
    for (bound, sent) in [(NAME, PLACEHOLDER), ("http://api.example.com", SECRET)] {
        env.set(grant(&[("token", PLACEHOLDER, SECRET, bound)], &[]));
        let (stream, _) = env.open(plain.address, host(), false).await;
        let mut program = super::env::Sender::new(stream, false).await;
        program.get("/", &[("x-key", PLACEHOLDER)]).await;
        assert_eq!(plain.last().header("x-key"), sent, "{bound}");
    }
}

#[tokio::test]
async fn placeholders_in_urls_and_bodies_stay() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["http/1.1"])), echo).await;
    let (mut program, _) = env.program(site.address, false).await;
    let request = http::Request::post(format!("/{PLACEHOLDER}"));
    let request = request.body(super::site::full(PLACEHOLDER)).unwrap();
    let answer = super::env::collect_body(program.send(request).await.unwrap()).await;
    assert_eq!(site.last().uri.path(), format!("/{PLACEHOLDER}"));
    assert!(text(&answer).ends_with(&format!("\n{PLACEHOLDER}")));
}

#[tokio::test]
async fn a_secret_that_no_header_can_hold_is_named_and_not_sent() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["h2", "http/1.1"])), echo).await;
    let unfit = ("unfit-one", "holder-of-unfit", "line\nend-of-secret", NAME);
    env.set(grant(&[("token", PLACEHOLDER, SECRET, NAME), unfit], &[]));
    for is_two in [false, true] {
        let (mut program, _) = env.program(site.address, is_two).await;
        let answer = program.get("/", &[("x-key", "a holder-of-unfit")]).await;
        assert_eq!(answer.status(), 502);
        let text = text(&answer);
        assert!(
            text.starts_with("sandyard gateway: ") && text.contains("`unfit-one`"),
            "{text}"
        );
        assert!(!text.contains("end-of-secret"), "{text}");
    }
    assert!(site.seen().is_empty());
    // It does not stand in the way of others, and fits where bytes are encoded.
    let (mut program, _) = env.program(site.address, true).await;
    assert_eq!(
        program.get("/", &[("x-key", PLACEHOLDER)]).await.status(),
        200
    );
    let authorization = format!("Basic {}", STANDARD.encode("user:holder-of-unfit"));
    assert_eq!(
        program
            .get("/", &[("authorization", &authorization)])
            .await
            .status(),
        200
    );
    let sent = format!("Basic {}", STANDARD.encode("user:line\nend-of-secret"));
    assert_eq!(site.last().header("authorization"), sent);
}

#[tokio::test]
async fn a_changed_grant_counts_from_the_next_request_on() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["http/1.1"])), echo).await;
    let (mut program, _) = env.program(site.address, false).await;
    program.get("/", &[("x-key", PLACEHOLDER)]).await;
    assert_eq!(site.last().header("x-key"), SECRET);
    env.set(grant(
        &[("token", PLACEHOLDER, "the-next-value", NAME)],
        &[],
    ));
    program.get("/", &[("x-key", PLACEHOLDER)]).await;
    assert_eq!(site.last().header("x-key"), "the-next-value");
    env.set(grant(&[], &[]));
    program.get("/", &[("x-key", PLACEHOLDER)]).await;
    assert_eq!(site.last().header("x-key"), PLACEHOLDER);
}

#[test]
fn only_hosts_with_rules_or_secrets_are_changed() {
    let other = Host {
        name: "www.example.org".to_owned(),
        port: 443,
    };
    let of_secret = grant(&[("token", PLACEHOLDER, SECRET, NAME)], &[]);
    assert!(changes(&of_secret, &host(), true));
    assert!(!changes(&of_secret, &host(), false));
    assert!(!changes(&of_secret, &other, true));
    let of_rule = grant(&[], &[("*.example.com", "x-team", "one")]);
    assert!(changes(&of_rule, &host(), true));
    assert!(!changes(&of_rule, &host(), false));
    assert!(!changes(&of_rule, &other, true));
    assert!(!changes(&grant(&[], &[]), &host(), true));
}
