use super::*;
use crate::address::{PreviewAddress, PreviewForm};
use crate::target::Scheme;

fn target(form: PreviewForm) -> Target {
    let address = PreviewAddress {
        sandbox: "abc".to_owned(),
        port: 3000,
        form,
    };
    let mut target = Target::new(&address, "public.example:81", Scheme::Https);
    target.client = Some("::ffff:192.0.2.7".parse().unwrap());
    target
}

fn parts(uri: &str, headers: &[(&str, &str)]) -> Parts {
    let mut builder = http::Request::builder().uri(uri);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(()).unwrap().into_parts().0
}

fn prepared(uri: &str, headers: &[(&str, &str)], target: &Target) -> Result<Parts, ForwardError> {
    let mut parts = parts(uri, headers);
    prepare(&mut parts, target).map(|_| parts)
}

fn lines(parts: &Parts) -> Vec<String> {
    let mut lines: Vec<String> = parts
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    lines.sort();
    lines
}

#[test]
fn what_the_client_says_of_itself_is_replaced() {
    let headers = [
        ("host", "spoofed"),
        ("x-forwarded-for", "1.2.3.4"),
        ("x-forwarded-for", "5.6.7.8"),
        ("x-forwarded-port", "1"),
        ("x_forwarded_for", "1.2.3.4"),
        ("x-forwarded-prefix", "/evil"),
        ("forwarded", "for=1.2.3.4"),
        ("x-real-ip", "1.2.3.4"),
        ("proxy", "http://evil"),
        ("accept", "*/*"),
    ];
    let parts = prepared("/x", &headers, &target(PreviewForm::Host)).unwrap();
    assert_eq!(
        lines(&parts),
        [
            "accept: */*",
            "connection: close",
            "host: public.example:81",
            "x-forwarded-for: 192.0.2.7",
            "x-forwarded-host: public.example:81",
            "x-forwarded-proto: https",
        ]
    );
}

#[test]
fn our_credentials_never_get_in() {
    let headers = [
        (
            "cookie",
            "a=1; sandyard_preview=SECRET; sandyard_session=SECRET",
        ),
        ("x-api-key", "SECRET"),
        ("x_api_key", "SECRET"),
        ("x-sandyard-token", "SECRET"),
        ("e2b-traffic-access-token", "SECRET"),
        ("e2b-sandbox-id", "SECRET"),
        ("e2b_sandbox_port", "SECRET"),
        ("proxy-authorization", "SECRET"),
        ("authorization", "Bearer SECRET"),
        ("referer", "https://h/?sandyard_token=SECRET&b=1"),
    ];
    let mut target = target(PreviewForm::Host);
    target.authorization = AuthorizationHeader::Withhold;
    let parts = prepared("/?a=1&sandyard_token=SECRET", &headers, &target).unwrap();
    assert!(!format!("{:?} {:?}", parts.uri, parts.headers).contains("SECRET"));
    assert_eq!(parts.uri, "/?a=1");
    assert_eq!(parts.headers["cookie"], "a=1");
    assert_eq!(parts.headers["referer"], "https://h/?b=1");
}

#[test]
fn a_program_sees_the_host_it_shall_see() {
    let mut target = target(PreviewForm::Host);
    for (host_header, expected) in [
        (HostHeader::Keep, "public.example:81"),
        (HostHeader::Localhost, "localhost:3000"),
        (HostHeader::Fixed("app.example".to_owned()), "app.example"),
    ] {
        target.host_header = host_header;
        let parts = prepared("/", &[("host", "spoofed")], &target).unwrap();
        assert_eq!(parts.headers["host"], expected);
        assert_eq!(parts.headers["x-forwarded-host"], "public.example:81");
    }
    target.host_header = HostHeader::Fixed("a\r\nx: y".to_owned());
    assert!(prepared("/", &[], &target).is_err());
}

#[test]
fn authorization_that_is_not_ours_goes_through() {
    let headers = [("authorization", "Basic eA==")];
    let parts = prepared("/", &headers, &target(PreviewForm::Host)).unwrap();
    assert_eq!(parts.headers["authorization"], "Basic eA==");
}

#[test]
fn the_prefix_is_removed_and_sent_as_a_header() {
    let target = target(PreviewForm::Path);
    let inner = |uri: &str| prepared(uri, &[], &target).map(|parts| parts.uri.to_string());
    assert_eq!(inner("/p/abc/3000").unwrap(), "/");
    assert_eq!(inner("/p/abc/3000?x=1").unwrap(), "/?x=1");
    assert_eq!(inner("/p/abc/3000/a/%2e?x=1").unwrap(), "/a/%2e?x=1");
    assert_eq!(inner("http://any/p/abc/3000//evil").unwrap(), "//evil");
    assert!(inner("/p/abc/30001/").is_err());
    assert!(inner("/other").is_err());
    let parts = prepared("/p/abc/3000/", &[], &target).unwrap();
    assert_eq!(parts.headers["x-forwarded-prefix"], "/p/abc/3000");
}

#[test]
fn the_host_can_be_localhost() {
    let mut target = target(PreviewForm::Host);
    target.host_header = HostHeader::Localhost;
    let parts = prepared("/", &[], &target).unwrap();
    assert_eq!(parts.headers["host"], "localhost:3000");
    assert_eq!(parts.headers["x-forwarded-host"], "public.example:81");
}

#[test]
fn contradictory_lengths_are_refused() {
    let target = target(PreviewForm::Host);
    for headers in [
        &[("content-length", "1"), ("transfer-encoding", "chunked")][..],
        &[("content-length", "1"), ("content-length", "1")],
        &[("content-length", "+1")],
        &[("content-length", "1, 1")],
        &[("transfer-encoding", "gzip, chunked")],
        &[
            ("transfer-encoding", "chunked"),
            ("transfer-encoding", "identity"),
        ],
        &[("transfer-encoding", "xchunked")],
    ] {
        assert!(matches!(
            prepared("/", headers, &target),
            Err(ForwardError::BadRequest(_))
        ));
    }
    // `Connection` cannot take the length away.
    let headers = [("content-length", "5"), ("connection", "content-length")];
    let parts = prepared("/", &headers, &target).unwrap();
    assert_eq!(parts.headers["content-length"], "5");
    let parts = prepared("/", &[("transfer-encoding", "Chunked")], &target).unwrap();
    assert_eq!(parts.headers["transfer-encoding"], "chunked");
}

#[test]
fn trailers_are_asked_for_only_when_the_client_does() {
    let parts = prepared("/", &[("te", "trailers, gzip")], &target(PreviewForm::Host)).unwrap();
    assert_eq!(parts.headers["te"], "trailers");
    assert_eq!(parts.headers["connection"], "close, te");
}

#[test]
fn connect_is_refused() {
    let mut parts = parts("example.com:80", &[]);
    parts.method = Method::CONNECT;
    assert!(prepare(&mut parts, &target(PreviewForm::Host)).is_err());
}
