//! `[redis]`: an index of timers in Redis.

use crate::kind::Kind;
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "redis",
    doc: "Redis as an index of timers, for installations with many servers. Without it the server reads timers from the \
          database, which is as safe. Set either `url`, which takes precedence, or `host`.",
    settings: &[
        Setting::new("redis.url", Kind::Url(&["redis", "redis+unix", "unix"]))
            .doc("URL of the Redis server, including password and database number.")
            .env(&["REDIS_URL"])
            .flag("--redis-url")
            .when_unset("no Redis")
            .example("redis://:password@cache.example.com:6379/0"),
        Setting::new("redis.host", Kind::Text)
            .doc("Host name or IP address of the Redis server.")
            .env(&["REDIS_HOST"])
            .example("cache.example.com"),
        Setting::new("redis.port", Kind::Integer(1, 65_535))
            .default("6379")
            .doc("Port of the Redis server.")
            .env(&["REDIS_PORT"]),
        Setting::new("redis.database", Kind::Integer(0, 65_536))
            .default("0")
            .doc("Number of the Redis database.")
            .env(&["REDIS_DATABASE", "REDIS_DB"]),
        Setting::new("redis.password", Kind::Text)
            .doc("Password of the Redis server.")
            .env(&["REDIS_PASSWORD"])
            .example("password")
            .secret(),
    ],
};
