//! The listener of E2B's API.

use sandyard_config::settings::E2bPort;
use sandyard_config::{check_binding, is_open};

use crate::Host;

fn listeners(host: &Host) -> Vec<String> {
    let settings = host.loaded().settings;
    let listeners = settings.e2b.listeners();
    listeners.iter().map(ToString::to_string).collect()
}

#[test]
fn it_is_beside_the_server_until_somebody_says_otherwise() {
    assert_eq!(listeners(&Host::new()), ["127.0.0.1:8101"]);
    let host = Host::new()
        .var("PORT", "9000,80")
        .var("HOST", "::1,127.0.0.1");
    assert_eq!(listeners(&host), ["[::1]:9001", "127.0.0.1:9001"]);
    let host = host
        .flag("e2b.port", "7000")
        .var("SANDYARD_E2B_HOST", "127.0.0.2");
    assert_eq!(listeners(&host), ["127.0.0.2:7000"]);
    assert_eq!(host.loaded().settings.e2b.port, E2bPort::Chosen(7000));
    assert!(listeners(&host.toml("[e2b]\nenabled = false\n")).is_empty());
}

#[test]
fn a_free_port_is_taken_only_if_that_was_asked_for() {
    assert_eq!(listeners(&Host::new().var("PORT", "0")), ["127.0.0.1:0"]);
    assert_eq!(
        listeners(&Host::new().flag("e2b.port", "0")),
        ["127.0.0.1:0"]
    );
    assert!(listeners(&Host::new().var("PORT", "65535")).is_empty());
}

#[test]
fn the_servers_own_port_cannot_be_its_port() {
    assert_eq!(
        Host::new().flag("e2b.port", "8100").errors(),
        [
            "flag --e2b-port: e2b.port: `8100` is also `server.port`\n  hint: choose another port: E2B's API needs a \
             listener of its own"
        ]
    );
    // At another address it can.
    let host = Host::new()
        .flag("e2b.port", "8100")
        .var("SANDYARD_E2B_HOST", "127.0.0.2");
    assert_eq!(listeners(&host), ["127.0.0.2:8100"]);
}

#[test]
fn a_domain_is_one_that_the_server_answers_for() {
    let host = || Host::new().var("SANDYARD_DOMAIN", "Sbx.Test");
    let domain = |host: Host| host.loaded().settings.e2b.domain;
    assert_eq!(domain(host()), None);
    for (text, expected) in [
        ("sbx.test", "sbx.test"),
        ("SBX.test.:8443", "sbx.test:8443"),
        ("localhost:9101", "localhost:9101"),
    ] {
        let host = host().var("SANDYARD_E2B_DOMAIN", text);
        assert_eq!(domain(host).as_deref(), Some(expected));
    }
    for text in [
        "sbx.test:0",
        "sbx.test:http",
        "https://sbx.test",
        "sbx.test:1:2",
        ":1",
    ] {
        let errors = host().var("SANDYARD_E2B_DOMAIN", text).errors();
        assert!(errors[0].contains("is not a DNS name"), "{errors:?}");
    }
    assert_eq!(
        host().var("SANDYARD_E2B_DOMAIN", "other.test:1").errors(),
        [
            "variable SANDYARD_E2B_DOMAIN: e2b.domain: `other.test` differs from `server.domain`, which is `sbx.test`\n  hint: set \
             `server.domain` to `other.test`"
        ]
    );
}

#[test]
fn others_who_reach_it_reach_the_server() {
    let host = || Host::new().var("SANDYARD_E2B_HOST", "0.0.0.0");
    let settings = host().loaded().settings;
    assert!(check_binding(&settings).is_ok());
    assert!(!is_open(&settings, "127.0.0.1".parse().unwrap()));
    let errors = host().var("SANDYARD_AUTH_MODE", "open").errors();
    assert!(
        errors[0].contains("E2B's API listens on 0.0.0.0"),
        "{errors:?}"
    );
    let warnings = host().warnings();
    assert!(
        warnings.len() == 1
            && warnings[0].starts_with("variable SANDYARD_E2B_HOST: e2b.host: keys"),
        "{warnings:?}"
    );
    // What does not listen opens nothing.
    let off = host().var("SANDYARD_E2B_ENABLED", "off");
    assert!(off.warnings().is_empty());
    assert!(is_open(
        &off.loaded().settings,
        "127.0.0.1".parse().unwrap()
    ));
}
