//! When the server refuses to start, and where it asks for no key.

use std::net::IpAddr;

use sandyard_config::{check_binding, is_open};

use crate::Host;

const LOOPBACK: &str = "127.0.0.1";

fn open(host: &Host, address: &str) -> bool {
    is_open(
        &host.loaded().settings,
        address.parse::<IpAddr>().expect("address"),
    )
}

#[test]
fn alone_on_loopback_auto_and_open_ask_for_nothing() {
    for mode in ["auto", "open"] {
        let host = Host::new()
            .var("SANDYARD_AUTH_MODE", mode)
            .var("HOST", "127.0.0.1,::1");
        assert!(open(&host, LOOPBACK) && open(&host, "::1") && open(&host, "::ffff:127.0.0.1"));
        assert!(!open(&host, "192.0.2.1"));
    }
    let host = Host::new().var("SANDYARD_AUTH_MODE", "required");
    assert!(!open(&host, LOOPBACK));
}

#[test]
fn auto_where_others_can_reach_the_server_asks_everywhere_and_starts() {
    for (name, text) in [
        ("HOST", "0.0.0.0"),
        ("HOST", "127.0.0.1,192.0.2.1"),
        ("HOST", "::"),
        ("SANDYARD_SERVER_PUBLIC_URL", "https://box.example.com"),
        ("SANDYARD_SERVER_TRUSTED_PROXIES", "127.0.0.1"),
    ] {
        let host = Host::new().var(name, text);
        assert!(
            check_binding(&host.loaded().settings).is_ok(),
            "{name}={text}"
        );
        assert!(!open(&host, LOOPBACK), "{name}={text}");
    }
}

#[test]
fn a_public_url_of_this_machine_changes_nothing() {
    for url in [
        "http://localhost:8100",
        "http://box.localhost",
        "http://127.0.0.1:8100",
        "http://[::1]:1",
    ] {
        let host = Host::new().var("SANDYARD_SERVER_PUBLIC_URL", url);
        assert!(open(&host, LOOPBACK), "{url}");
    }
    // A name that only looks like it.
    let host = Host::new().var("SANDYARD_SERVER_PUBLIC_URL", "http://localhost.example.com");
    assert!(!open(&host, LOOPBACK));
}

#[test]
fn open_where_others_can_reach_the_server_is_refused_with_what_to_set() {
    for (name, text, how) in [
        ("HOST", "0.0.0.0", "it listens on 0.0.0.0"),
        ("HOST", "::", "it listens on ::"),
        ("HOST", "127.0.0.1,10.0.0.1", "it listens on 10.0.0.1"),
        (
            "SANDYARD_SERVER_PUBLIC_URL",
            "https://box.example.com/",
            "its public URL is https://box.example.com",
        ),
        (
            "SANDYARD_SERVER_TRUSTED_PROXIES",
            "10.0.0.0/8",
            "it is behind the proxy 10.0.0.0/8",
        ),
    ] {
        let errors = Host::new()
            .var(name, text)
            .var("SANDYARD_AUTH_MODE", "open")
            .errors();
        assert_eq!(
            errors,
            [format!(
                "variable SANDYARD_AUTH_MODE: auth.mode: other machines could use the server without a key: \
                 {how}\n  hint: set `auth.mode` to `auto` or `required` (SANDYARD_AUTH_MODE=required), or listen \
                 on loopback only (SANDBOX_SERVER_HOST=127.0.0.1) with no proxy in front"
            )]
        );
    }
}

#[test]
fn keys_in_the_clear_are_a_warning() {
    let warnings = |host: Host| host.warnings().len();
    assert_eq!(warnings(Host::new().var("HOST", "0.0.0.0")), 1);
    assert_eq!(
        warnings(
            Host::new()
                .var("HOST", "0.0.0.0")
                .var("SANDYARD_SERVER_TLS_SELF_SIGNED", "on")
        ),
        0
    );
    assert_eq!(
        warnings(
            Host::new()
                .var("HOST", "0.0.0.0")
                .var("SANDYARD_SERVER_PUBLIC_URL", "https://x.example")
        ),
        0
    );
    assert_eq!(
        warnings(
            Host::new()
                .var("HOST", "0.0.0.0")
                .var("SANDYARD_SERVER_TRUSTED_PROXIES", "10.0.0.0/8")
        ),
        0
    );
    assert_eq!(warnings(Host::new()), 0);
}
