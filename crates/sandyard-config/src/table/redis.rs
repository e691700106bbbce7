//! `[redis]`: timers outside of the database.

use crate::kind::Kind;
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "redis",
    doc: "Timers in Redis. Without it they are in the database, which is as safe; Redis is for many servers. Either `url`, \
          which wins, or at least `host`.",
    settings: &[
        Setting::new(
            "redis.url",
            Kind::Url(&["redis", "redis+unix", "unix"]),
            "",
            "The Redis server, password and database number included.",
        )
        .env(&["REDIS_URL"])
        .flag("--redis-url")
        .otherwise("timers in the database")
        .example("redis://:password@cache.example.com:6379/0"),
        Setting::new(
            "redis.host",
            Kind::Text,
            "",
            "Name or address of the Redis server.",
        )
        .env(&["REDIS_HOST"])
        .example("cache.example.com"),
        Setting::new("redis.port", Kind::Whole(1, 65_535), "6379", "Its port.")
            .env(&["REDIS_PORT"]),
        Setting::new(
            "redis.database",
            Kind::Whole(0, 65_536),
            "0",
            "Number of the Redis database.",
        )
        .env(&["REDIS_DATABASE", "REDIS_DB"]),
        Setting::new("redis.password", Kind::Text, "", "Its password.")
            .env(&["REDIS_PASSWORD"])
            .example("password")
            .secret(),
    ],
};
