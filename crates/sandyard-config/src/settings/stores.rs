//! URLs of the database and of Redis.

use std::net::Ipv6Addr;

use sandyard_core::percent;

use crate::secret::Secret;
use crate::values::Values;

pub(super) fn database_url(values: &Values) -> Secret {
    Secret::new(values.text("database.url").unwrap_or_default().to_owned())
}

/// The URL as given, else put together from the parts.
pub(super) fn redis_url(values: &Values) -> Option<Secret> {
    if let Some(text) = values.text("redis.url") {
        return Some(Secret::new(text.to_owned()));
    }
    let host = values.text("redis.host")?;
    let host = match host.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) => host.to_owned(),
    };
    let login = values
        .text("redis.password")
        .map_or_else(String::new, |password| {
            format!(":{}@", percent::encode(password))
        });
    let (port, database) = (values.number("redis.port"), values.number("redis.database"));
    Some(Secret::new(format!(
        "redis://{login}{host}:{port}/{database}"
    )))
}
