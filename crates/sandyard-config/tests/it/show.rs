//! The table and the JSON of the settings in force.

use crate::Host;

const SECRETS: [&str; 5] = [
    "0123456789abcdef0123456789abcdef",
    "s3cret",
    "r3dis",
    "pr0xy",
    "5EA1000000000000000000000000000000000000000000000000000000000000",
];

fn host() -> Host {
    Host::new()
        .var("JWT_SECRET", SECRETS[0])
        .var("DATABASE_URL", "postgres://app:s3cret@db/x")
        .var("REDIS_HOST", "cache")
        .var("REDIS_PASSWORD", SECRETS[2])
        .var(
            "SANDYARD_GATEWAY_PROXY",
            "http://pr0xy@proxy.example.com:3128",
        )
        .var("SANDYARD_SECRETS_KEY", SECRETS[4])
        .flag("server.port", "8100,8080")
}

#[test]
fn the_table_shows_values_and_origins() {
    let table = host().loaded().settings.values.to_table();
    let row = |key: &str| {
        let line = table
            .lines()
            .find(|line| line.starts_with(key))
            .expect("row");
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("SETTING"), "SETTING VALUE FROM");
    assert_eq!(row("server.port"), "server.port 8100,8080 flag --port");
    assert_eq!(
        row("auth.jwt_secret"),
        "auth.jwt_secret ******** variable JWT_SECRET"
    );
    assert_eq!(
        row("database.url"),
        "database.url postgres://app:********@db/x variable DATABASE_URL"
    );
    assert_eq!(row("node.url"), "node.url - default");
    assert_eq!(table.lines().count(), 1 + crate::table().all().count());
}

#[test]
fn json_has_every_setting_with_value_and_origin() {
    let json = host().loaded().settings.values.to_json();
    assert_eq!(json["server.port"]["value"], "8100,8080");
    assert_eq!(json["server.port"]["origin"], "flag --port");
    assert_eq!(json["auth.jwt_secret"]["value"], "********");
    assert_eq!(json["auth.jwt_secret"]["secret"], true);
    assert_eq!(json["node.url"]["value"], serde_json::Value::Null);
    assert_eq!(
        json.as_object().map(serde_json::Map::len),
        Some(crate::table().all().count())
    );
}

#[test]
fn secrets_are_nowhere_to_be_seen() {
    let host = host();
    let loaded = host.loaded();
    let seen = format!(
        "{} {} {loaded:?} {:?}",
        loaded.settings.values.to_table(),
        loaded.settings.values.to_json(),
        host.sources
    );
    for secret in SECRETS {
        assert!(!seen.contains(secret), "{secret}");
    }
}
