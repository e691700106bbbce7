//! Which source wins.

use sandyard_config::Origin;

use crate::{Host, origin};

fn port(host: &Host) -> u16 {
    host.loaded().settings.server.ports[0]
}

#[test]
fn each_source_beats_the_ones_below_it() {
    let host = Host::new();
    assert_eq!(port(&host), 8100);
    let host = host.toml("[server]\nport = 1001\n");
    assert_eq!(port(&host), 1001);
    let host = host.file("work/.env", "SANDBOX_SERVER_PORT=1002\n");
    assert_eq!(port(&host), 1002);
    let host = host.var("PORT", "1003");
    assert_eq!(port(&host), 1003);
    let host = host.flag("server.port", "1004");
    assert_eq!(port(&host), 1004);
}

#[test]
fn of_several_variables_the_first_listed_wins() {
    let mut host = Host::new();
    for (name, text) in [
        ("PORT", "1"),
        ("SERVER_PORT", "2"),
        ("SANDBOX_SERVER_PORT", "3"),
        ("SANDYARD_SERVER_PORT", "4"),
    ] {
        host = host.var(name, text);
        assert_eq!(port(&host).to_string(), text, "{name}");
    }
}

#[test]
fn an_empty_value_counts_as_not_said_in_every_layer() {
    let host = Host::new()
        .flag("server.port", "")
        .var("SANDBOX_SERVER_PORT", "")
        .var("PORT", "")
        .file("work/.env", "PORT=\n")
        .toml("server.port = \"\"\n");
    let loaded = host.loaded();
    assert_eq!(loaded.settings.server.ports, [8100]);
    assert_eq!(origin(&loaded, "server.port"), Origin::Default);
}

#[test]
fn every_setting_can_be_said_by_each_of_its_variables_and_in_the_file() {
    for setting in crate::table().all() {
        let text = if setting.example.is_empty() {
            setting.default
        } else {
            setting.example
        };
        // Whether the settings fit together does not matter here, only which source is used.
        let takes_effect = |host: Host| match host.load() {
            Ok(loaded) => *loaded.settings.values.origin(setting.key) != Origin::Default,
            Err(problems) => problems.errors.iter().all(|problem| {
                problem.key.as_deref().is_some_and(|key| {
                    key.starts_with("server.tls_")
                        || key == "gateway.trusted_ca"
                        || key == "sandbox.agent_program"
                })
            }),
        };
        for variable in setting.variables() {
            assert!(takes_effect(Host::new().var(&variable, text)), "{variable}");
        }
        assert!(
            takes_effect(Host::new().flag(setting.key, text)),
            "{}",
            setting.key
        );
        let line = format!("{} = \"{text}\"\n", setting.key);
        assert!(takes_effect(Host::new().toml(&line)), "{line}");
    }
}

#[test]
fn origins_point_at_the_very_place() {
    let host = Host::new()
        .toml("\n[server]\nport = 1\n\n[log]\nlevel = \"warn\"\n")
        .file("work/.env", "# mine\nMCP_PORT=7000\n")
        .var("SERVER_HOST", "localhost")
        .flag("server.domain", "box.example.com");
    let loaded = host.loaded();
    for (key, expected) in [
        (
            "server.port",
            format!("{}:3", host.path("data/sandyard.toml").display()),
        ),
        (
            "log.level",
            format!("{}:6", host.path("data/sandyard.toml").display()),
        ),
        (
            "sandbox.mcp_port",
            format!("{}:2, variable MCP_PORT", host.path("work/.env").display()),
        ),
        ("server.host", "variable SERVER_HOST".to_owned()),
        ("server.domain", "flag --domain".to_owned()),
        ("log.format", "default".to_owned()),
    ] {
        assert_eq!(origin(&loaded, key).to_string(), expected, "{key}");
    }
}

#[test]
fn the_former_key_of_a_setting_is_accepted_in_every_source() {
    for host in [
        Host::new().flag("lifecycle.stranger_grace", "7"),
        Host::new().var("SANDYARD_LIFECYCLE_STRANGER_GRACE", "7"),
        Host::new().toml("[lifecycle]\nstranger_grace = 7\n"),
    ] {
        let lifecycle = host.loaded().settings.lifecycle;
        assert_eq!(lifecycle.orphan_grace, std::time::Duration::from_secs(7));
        assert_eq!(host.warnings(), Vec::<String>::new());
    }
}
