//! What sandboxes reach, and how secrets are kept.

use sandyard_core::network::{NetworkPolicy, Target};

use crate::Host;

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

fn targets(texts: &[&str]) -> Vec<Target> {
    texts
        .iter()
        .map(|text| text.parse().expect("a target"))
        .collect()
}

#[test]
fn nothing_configured_opens_the_public_internet_and_nothing_else() {
    let settings = Host::new().loaded().settings;
    let gateway = settings.gateway;
    assert!(gateway.is_enabled);
    assert_eq!((gateway.reachable, gateway.denied), (vec![], vec![]));
    assert_eq!(gateway.default_policy, NetworkPolicy::default());
    assert_eq!(gateway.nameservers, []);
    assert_eq!((gateway.proxy, gateway.trusted_ca), (None, None));
    assert_eq!(
        (gateway.max_connections, gateway.max_connections_total),
        (2048, 16_384)
    );
    assert_eq!(
        (gateway.connections_per_second, gateway.queries_per_second),
        (500, 200)
    );
    assert_eq!(gateway.bytes_per_second, None);
    assert_eq!(settings.sealing_key, None);
}

#[test]
fn lists_may_be_arrays_in_the_file_and_commas_in_a_variable() {
    let host = Host::new()
        .toml(
            "[gateway]\nreachable = [\"10.0.8.0/24:5432\", \"registry.internal\"]\ndenied = \"*:25\"\n\
             allow_internet_access = false\nallow_out = [\"pypi.org\"]\nbytes_per_second = \"10m\"\n",
        )
        .var("SANDYARD_GATEWAY_DENY_OUT", "*.example.com, 203.0.113.7")
        .var("SANDYARD_GATEWAY_NAMESERVERS", "192.0.2.53,[::1]:5353");
    let gateway = host.loaded().settings.gateway;
    assert_eq!(
        gateway.reachable,
        targets(&["10.0.8.0/24:5432", "registry.internal"])
    );
    assert_eq!(gateway.denied, targets(&["*:25"]));
    let policy = gateway.default_policy;
    assert!(!policy.allow_internet_access);
    assert_eq!(policy.allow_out, targets(&["pypi.org"]));
    assert_eq!(policy.deny_out, targets(&["*.example.com", "203.0.113.7"]));
    let servers: Vec<String> = gateway
        .nameservers
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(servers, ["192.0.2.53:53", "[::1]:5353"]);
    assert_eq!(gateway.bytes_per_second, Some(10 << 20));
}

#[test]
fn errors_about_targets_servers_and_keys_have_a_location_and_no_secrets() {
    let host = Host::new()
        .toml(
            "[gateway]\nallow_out = [\"pypi.org\", \"http://example.com/\"]\nnameservers = \"dns.example.com\"\n\
             proxy = \"ftp://hunter2@proxy\"\nmax_connections = 0\n\n[secrets]\nkey = \"hunter2\"\n",
        )
        .var("SANDYARD_GATEWAY_DENIED", "10.0.0.0/99");
    assert_eq!(
        host.errors(),
        [
            "data/sandyard.toml:2: gateway.allow_out: `pypi.org,http://example.com/` has an invalid part 2: it must be a name, an \
             address or a network like 10.0.0.0/8, with or without a port",
            "data/sandyard.toml:3: gateway.nameservers: `dns.example.com` is not an IP address, with or without a port",
            "data/sandyard.toml:4: gateway.proxy: the value is not a URL of http:, socks5:, socks5h:",
            "data/sandyard.toml:5: gateway.max_connections: `0` must be between 1 and 1000000",
            "data/sandyard.toml:8: secrets.key: the value is not a key of 32 bytes: write 64 hexadecimal digits, or base64; `openssl \
             rand -hex 32` makes one",
            "variable SANDYARD_GATEWAY_DENIED: gateway.denied: `10.0.0.0/99` is not a name, an address or a network like \
             10.0.0.0/8, with or without a port",
        ]
    );
}

#[test]
fn a_file_of_authorities_must_be_there() {
    let host = Host::new().toml("gateway.trusted_ca = \"none.pem\"\n");
    let errors = host.errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(
        errors[0]
            .starts_with("data/sandyard.toml:1: gateway.trusted_ca: failed to open `none.pem`: "),
        "{errors:?}"
    );
    let host = host.file("work/none.pem", "");
    let path = host.loaded().settings.gateway.trusted_ca;
    assert_eq!(path, Some(host.path("work/none.pem")));
}

#[test]
fn one_sandbox_may_not_have_more_connections_than_all() {
    let host = Host::new().var("SANDYARD_GATEWAY_MAX_CONNECTIONS_TOTAL", "100");
    assert_eq!(host.loaded().settings.gateway.max_connections, 100);
    let host = host.var("SANDYARD_GATEWAY_MAX_CONNECTIONS", "200");
    assert_eq!(
        host.errors(),
        [
            "variable SANDYARD_GATEWAY_MAX_CONNECTIONS: gateway.max_connections: `200` exceeds \
             `gateway.max_connections_total`, which is `100`\n  hint: raise `gateway.max_connections_total` as well"
        ]
    );
}

#[test]
fn settings_of_a_gateway_that_is_off_are_a_warning() {
    let host = Host::new().var("SANDYARD_GATEWAY_ENABLED", "off");
    assert_eq!(host.warnings(), [""; 0]);
    let host = host.var("SANDYARD_GATEWAY_REACHABLE", "10.0.0.0/8");
    assert_eq!(
        host.warnings(),
        [
            "variable SANDYARD_GATEWAY_REACHABLE: gateway.reachable: has no effect, because `gateway.enabled` is `false`\n  hint: set \
             `gateway.enabled` to `true`"
        ]
    );
}

#[test]
fn servers_that_share_a_database_are_warned_without_a_shared_key() {
    let host = Host::new()
        .var("DATABASE_URL", "postgres://db/x")
        .var("SANDYARD_NODE_URL", "http://10.0.0.5:8100");
    let warnings = host.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("`secrets.key` is not set"),
        "{warnings:?}"
    );
    let host = host.var("SANDYARD_SECRETS_KEY", KEY);
    assert_eq!(host.warnings(), [""; 0]);
    let key = host.loaded().settings.sealing_key.unwrap();
    assert_eq!(key.expose(), std::array::from_fn(|at| at as u8));
}
