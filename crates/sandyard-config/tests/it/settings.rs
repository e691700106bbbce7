//! The typed result.

use std::time::Duration;

use sandyard_config::settings::{AuthMode, Tls};
use sandyard_core::{LimitPolicy, Limits};

use crate::Host;

#[test]
fn nothing_configured_gives_the_documented_defaults() {
    let host = Host::new();
    let settings = host.loaded().settings;
    assert_eq!(settings.data_dir, host.path("data"));
    let listeners: Vec<String> = settings
        .server
        .listeners()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(listeners, ["127.0.0.1:8100"]);
    assert_eq!(settings.server.domain, "localhost");
    assert_eq!(settings.server.tls, Tls::Off);
    assert_eq!(settings.server.rate_limit, None);
    assert_eq!(settings.auth.mode, AuthMode::Auto);
    assert_eq!(settings.auth.jwt_secret, None);
    assert_eq!(settings.auth.lockout_failures, Some(5));
    let database = format!("sqlite://{}/sandyard.db", host.path("data").display());
    assert_eq!(settings.database_url.expose(), database);
    assert_eq!(settings.redis_url, None);
    assert_eq!(settings.sandbox.provider, "embedded");
    assert_eq!(settings.sandbox.template, None);
    assert_eq!(
        (settings.sandbox.mcp_port, settings.sandbox.code_server_port),
        (6060, 9000)
    );
    assert_eq!(
        settings.lifecycle.default_timeout,
        Duration::from_secs(3600)
    );
    assert_eq!(settings.lifecycle.max_timeout, Duration::from_secs(86_400));
    assert_eq!(
        settings.lifecycle.retention,
        Some(Duration::from_secs(7 * 86_400))
    );
    assert_eq!(settings.limits.policy, LimitPolicy::default());
    assert_eq!(
        settings.limits.elsewhere(),
        (Limits::default(), Limits::DEFAULT_MAX)
    );
    assert_eq!(settings.limits.memory_reserve, None);
    assert_eq!(settings.limits.sandboxes_per_user, Some(100));
    assert_eq!(settings.limits.sandboxes, None);
    assert_eq!(
        (settings.log.level.as_str(), settings.log.is_json),
        ("info", false)
    );
}

#[test]
fn every_port_is_opened_at_every_address() {
    let host =
        Host::new().toml("[server]\nhost = [\"127.0.0.1\", \"::1\"]\nport = [8_100, 8080]\n");
    let listeners: Vec<String> = host
        .loaded()
        .settings
        .server
        .listeners()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        listeners,
        [
            "127.0.0.1:8100",
            "[::1]:8100",
            "127.0.0.1:8080",
            "[::1]:8080"
        ]
    );
}

#[test]
fn plain_toml_values_are_taken_as_they_are_meant() {
    let host = Host::new().toml(
        "[server]\nport = 0x1f90\ntls_self_signed = true\n[limits]\ncpu = 0.5\nmemory = 1073741824\n[lifecycle]\nretention = 0\n",
    );
    let settings = host.loaded().settings;
    assert_eq!(settings.server.ports, [8080]);
    assert_eq!(settings.server.tls, Tls::SelfSigned);
    let default = settings.limits.policy.default;
    assert_eq!(default.cpu_millis, Some(500));
    assert_eq!(default.memory_bytes, Some(1 << 30));
    assert_eq!(settings.lifecycle.retention, None);
}

#[test]
fn lowering_a_maximum_brings_its_default_down() {
    let host = Host::new()
        .toml("limits.max_memory = \"1g\"\n")
        .var("MAX_TIMEOUT", "60")
        .var("SANDYARD_AUTH_REFRESH_TTL", "1h");
    let settings = host.loaded().settings;
    let (default, most) = settings.limits.elsewhere();
    assert_eq!(
        (default.memory_bytes, most.memory_bytes),
        (1 << 30, 1 << 30)
    );
    assert_eq!(settings.lifecycle.default_timeout, Duration::from_secs(60));
    assert_eq!(settings.auth.token_ttl, Duration::from_secs(3600));
}

#[test]
fn redis_is_put_together_from_its_parts() {
    let url = |host: Host| {
        host.loaded()
            .settings
            .redis_url
            .map(|url| url.expose().to_owned())
    };
    let host = Host::new().var("REDIS_HOST", "cache");
    assert_eq!(url(host).as_deref(), Some("redis://cache:6379/0"));
    let host = Host::new()
        .var("REDIS_HOST", "fd00::1")
        .var("REDIS_PORT", "7000")
        .var("REDIS_DATABASE", "3")
        .var("REDIS_PASSWORD", "p@ss/word");
    assert_eq!(
        url(host).as_deref(),
        Some("redis://:p%40ss%2Fword@[fd00::1]:7000/3")
    );
    let host = Host::new()
        .var("REDIS_HOST", "cache")
        .var("REDIS_URL", "redis://other/1");
    assert_eq!(url(host).as_deref(), Some("redis://other/1"));
}

#[test]
fn redis_parts_without_a_server_are_a_warning() {
    let host = Host::new().var("REDIS_PASSWORD", "x");
    assert_eq!(
        host.warnings(),
        [
            "variable REDIS_PASSWORD: redis.password: has no effect, because no Redis server is set\n  hint: set `redis.host`"
        ]
    );
    assert_eq!(host.loaded().settings.redis_url, None);
}

#[test]
fn database_urls_lose_their_driver_and_odd_data_directories_are_encoded() {
    let host = Host::new().var("SANDBOX_DATABASE_URL", "postgresql+asyncpg://app:x@db/y");
    assert_eq!(
        host.loaded().settings.database_url.expose(),
        "postgresql://app:x@db/y"
    );
    let host = Host::new().flag("data_dir", "/srv/50% of?it");
    assert_eq!(
        host.loaded().settings.database_url.expose(),
        "sqlite:///srv/50%25%20of%3Fit/sandyard.db"
    );
}

#[test]
fn certificates_come_in_pairs_that_can_be_opened() {
    let host = Host::new()
        .file("work/c.pem", "c")
        .file("work/k.pem", "k")
        .flag("server.tls_cert", "c.pem");
    assert_eq!(
        host.errors(),
        ["flag --tls-cert: server.tls_cert: requires `server.tls_key`"]
    );
    let host = host.flag("server.tls_key", "k.pem");
    let expected = Tls::Files {
        cert: host.path("work/c.pem"),
        key: host.path("work/k.pem"),
    };
    assert_eq!(host.loaded().settings.server.tls, expected);
    let host = host.flag("server.tls_self_signed", "true");
    assert!(host.errors()[0].contains("conflicts with `server.tls_cert`"));
    let host = Host::new()
        .flag("server.tls_cert", "c.pem")
        .flag("server.tls_key", "k.pem");
    assert_eq!(host.errors().len(), 2);
    assert!(
        host.errors()[1].starts_with("flag --tls-key: server.tls_key: failed to open `k.pem`: ")
    );
    let host = Host::new().flag("server.tls_key", "k.pem");
    assert_eq!(
        host.errors(),
        ["flag --tls-key: server.tls_key: requires `server.tls_cert`"]
    );
}

#[test]
fn the_template_of_e2bs_variables_is_e2bs_where_there_are_others() {
    let e2b = |provider: &str| {
        Host::new()
            .var("SANDBOX_PROVIDER", provider)
            .var("E2B_API_KEY", "secret")
    };
    let templates = |host: Host| {
        let settings = host.loaded().settings;
        let of_e2b = settings.sandbox.template_of("e2b").map(str::to_owned);
        (settings.sandbox.template, of_e2b)
    };
    let tools = || Some("tools".to_owned());
    // Alone or first, it is what sandboxes start from; also without E2B, whose users have the variable already.
    for provider in ["e2b", "embedded"] {
        let host = e2b(provider).var("E2B_TEMPLATE_ID", "tools");
        assert_eq!(templates(host), (tools(), None), "{provider}");
    }
    let beside = || e2b("embedded").toml("[sandbox]\nproviders = [\"e2b\"]\n");
    let host = beside().var("E2B_TEMPLATE", "tools");
    assert_eq!(templates(host), (None, tools()));
    let host = beside().var("SANDYARD_TEMPLATE", "tools");
    assert_eq!(templates(host), (tools(), None));
}
