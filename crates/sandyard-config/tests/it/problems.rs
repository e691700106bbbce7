//! Errors and warnings about invalid settings.

use crate::Host;

#[test]
fn all_problems_are_reported_at_once_each_with_its_location() {
    let host = Host::new()
        .toml(
            "\
retention = 3

[server]
prot = 8100
host = \"build-17\"

[serv]
x = 1

[limits]
memory = \"2x\"
",
        )
        .file("work/.env", "MCP_PORT=99999\n")
        .var("PORT", "http")
        .flag("lifecycle.retention", "soon");
    assert_eq!(
        host.errors(),
        [
            "data/sandyard.toml:1: there is no setting `retention`\n  hint: did you mean `lifecycle.retention`?",
            "data/sandyard.toml:4: there is no setting `server.prot`\n  hint: did you mean `server.port`?",
            "data/sandyard.toml:5: server.host: `build-17` is not an IP address or `localhost`",
            "data/sandyard.toml:7: there is no table `serv`\n  hint: did you mean `server`?",
            "data/sandyard.toml:11: limits.memory: `2x` is not a size: write a number with an optional k, m, g or t, like 512m or 2g",
            "variable PORT: server.port: `http` is not a port number, 0 to 65535",
            "work/.env:1, variable MCP_PORT: sandbox.mcp_port: `99999` must be between 1 and 65535",
            "flag for lifecycle.retention: lifecycle.retention: `soon` is not a time span: write seconds, or numbers with s, m, h or d, like 90, 30m, 1h30m or 7d",
        ]
    );
}

#[test]
fn a_broken_file_tells_its_line_and_never_its_text() {
    let host = Host::new().toml("[auth]\njwt_secret = \"hunter2hunter2\nx = = 1\n");
    let errors = host.errors();
    assert!(errors.len() == 2, "{errors:?}");
    assert!(
        errors[0].starts_with("data/sandyard.toml:2: this is not TOML: "),
        "{errors:?}"
    );
    assert!(
        errors[1].starts_with("data/sandyard.toml:3: "),
        "{errors:?}"
    );
    assert!(!errors.concat().contains("hunter2"), "{errors:?}");
}

#[test]
fn values_of_the_wrong_shape_are_reported() {
    for (text, expected) in [
        (
            "server = 3",
            "data/sandyard.toml:1: `server` is a table: write [server]",
        ),
        (
            "server.domain = [\"a\"]",
            "data/sandyard.toml:1: server.domain: takes one text, number or boolean",
        ),
        (
            "server.domain.x = 1",
            "data/sandyard.toml:1: server.domain: takes one text, number or boolean",
        ),
        (
            "server.port = [[1]]",
            "data/sandyard.toml:1: server.port: takes texts or numbers",
        ),
        (
            "log.level = 1979-05-27",
            "data/sandyard.toml:1: log.level: takes one text, number or boolean",
        ),
        (
            "sandbox.ready = -1",
            "data/sandyard.toml:1: sandbox.ready: `-1` is not a whole number",
        ),
        (
            "sandbox.ready = 99999999999999999999",
            "data/sandyard.toml:1: sandbox.ready: `99999999999999999999` is not a whole number",
        ),
    ] {
        assert_eq!(Host::new().toml(text).errors(), [expected], "{text}");
    }
}

#[test]
fn the_file_is_checked_even_where_something_stronger_hides_it() {
    let host = Host::new()
        .toml("server.port = \"x\"\n")
        .flag("server.port", "1");
    assert_eq!(
        host.errors(),
        ["data/sandyard.toml:1: server.port: `x` is not a port number, 0 to 65535"]
    );
}

#[test]
fn hidden_variables_of_other_programs_are_not_our_business() {
    let host = Host::new()
        .var("HOST", "build-17")
        .var("SANDBOX_SERVER_HOST", "127.0.0.1");
    assert_eq!(host.warnings(), [""; 0]);
}

#[test]
fn secrets_are_not_repeated_in_problems() {
    let host = Host::new()
        .var("JWT_SECRET", "hunter2")
        .var("DATABASE_URL", "mysql://app:s3cret@db/x");
    assert_eq!(
        host.errors(),
        [
            "variable JWT_SECRET: auth.jwt_secret: the value must have at least 32 bytes (got 7)",
            "variable DATABASE_URL: database.url: `mysql://app:********@db/x` is not a URL of sqlite:, postgres:, postgresql:",
        ]
    );
}

#[test]
fn unknown_variables_of_ours_are_warnings() {
    let host = Host::new()
        .var("SANDYARD_SERVER_PROT", "1")
        .var("SANDYARD_COLOUR_OF_THE_SHED", "red")
        .var("SANDYARD_API_KEY", "x")
        .var("SANDYARD_SERVICE_HOST", "10.0.0.1")
        .var("SANDYARD_PORT_8100_TCP", "tcp://10.0.0.1:8100")
        .file("work/.env", "SANDYARD_LOGG=debug\nOTHER=1\n");
    assert_eq!(
        host.warnings(),
        [
            "variable SANDYARD_COLOUR_OF_THE_SHED: is ignored: there is no such variable",
            "variable SANDYARD_SERVER_PROT: is ignored: there is no such variable\n  hint: did you mean `SANDYARD_SERVER_PORT`?",
            "work/.env:1, variable SANDYARD_LOGG: is ignored: there is no such variable\n  hint: did you mean `SANDYARD_LOG`?",
        ]
    );
}

#[test]
fn what_container_platforms_put_into_port_variables_is_left_out() {
    let host = Host::new()
        .var("REDIS_PORT", "tcp://10.0.0.1:6379")
        .var("REDIS_HOST", "10.0.0.1");
    assert_eq!(
        host.warnings(),
        ["variable REDIS_PORT: is ignored: it describes a service of the container platform"]
    );
    let url = host.loaded().settings.redis_url.unwrap();
    assert_eq!(url.expose(), "redis://10.0.0.1:6379/0");
}

#[test]
fn what_compilers_put_into_host_is_left_out() {
    let host = Host::new().var("HOST", "x86_64-conda-linux-gnu");
    assert_eq!(
        host.warnings(),
        [
            "variable HOST: is ignored: it names no address to listen on\n  hint: SANDYARD_SERVER_HOST says where to listen"
        ]
    );
    let addresses = host.loaded().settings.server.hosts;
    assert_eq!(
        addresses,
        ["127.0.0.1".parse::<std::net::IpAddr>().unwrap()]
    );
    let host = Host::new().var("HOST", "192.0.2.7");
    assert!(
        host.warnings()
            .iter()
            .all(|warning| !warning.contains("ignored"))
    );
}

#[test]
fn a_database_from_an_apps_env_file_is_a_warning() {
    let message = "this database comes from a variable that other programs use";
    let url = "sqlite:app.db";
    let host = Host::new().file("work/.env", &format!("DATABASE_URL={url}\n"));
    let warnings = host.warnings();
    assert!(
        warnings[0].starts_with("work/.env:1, variable DATABASE_URL:")
            && warnings[0].contains(message),
        "{warnings:?}"
    );
    for host in [
        Host::new().var("DATABASE_URL", url),
        Host::new().file("work/.env", &format!("SANDYARD_DATABASE_URL={url}\n")),
    ] {
        assert_eq!(host.warnings(), Vec::<String>::new());
    }
}

#[test]
fn unknown_flags_are_reported() {
    let host = Host::new().flag("server.prot", "1");
    assert_eq!(
        host.errors(),
        ["there is no setting `server.prot`\n  hint: did you mean `server.port`?"]
    );
}

#[test]
fn a_value_beyond_its_maximum_is_reported() {
    let host = Host::new()
        .toml("[limits]\nmemory = \"8g\"\nmax_memory = \"4g\"\n")
        .var("MAX_TIMEOUT", "60")
        .var("DEFAULT_TIMEOUT", "2m");
    assert_eq!(
        host.errors(),
        [
            "variable DEFAULT_TIMEOUT: lifecycle.default_timeout: `2m` exceeds `lifecycle.max_timeout`, which is `60`\n  hint: raise `lifecycle.max_timeout` as well",
            "data/sandyard.toml:2: limits.memory: `8g` exceeds `limits.max_memory`, which is `4g`\n  hint: raise `limits.max_memory` as well",
        ]
    );
}

#[test]
fn a_faulty_maximum_is_reported_once() {
    let host = Host::new()
        .var("MAX_TIMEOUT", "x")
        .var("DEFAULT_TIMEOUT", "9d");
    assert_eq!(host.errors().len(), 1);
}

#[test]
fn clouds_ask_for_their_keys_where_they_are_used() {
    for (name, variable) in [("e2b", "E2B_API_KEY"), ("daytona", "DAYTONA_API_KEY")] {
        for naming in [
            "SANDBOX_PROVIDER",
            "SANDYARD_PROVIDERS",
            "SANDYARD_FALLBACK",
        ] {
            let errors = Host::new().var(naming, name).errors();
            assert_eq!(errors.len(), 1, "{errors:?}");
            assert!(errors[0].contains(variable), "{errors:?}");
            let with_key = Host::new().var(naming, name).var(variable, "secret");
            with_key.loaded();
        }
    }
    // Of no concern to a server that does not use it.
    Host::new().var("DOCKER_HOST", "ssh://elsewhere").loaded();
}

#[test]
fn providers_have_known_names() {
    let errors = Host::new().var("SANDBOX_PROVIDER", "vmware").errors();
    assert!(
        errors[0].contains("must be one of embedded, docker"),
        "{errors:?}"
    );
    assert_eq!(
        Host::new().var("SANDBOX_PROVIDER", "Embedded").warnings(),
        [""; 0]
    );
}
