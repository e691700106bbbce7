//! Checks of request fields. The numbers come from [`sandyard_core::bounds`]; `schemas` states the same numbers in the OpenAPI
//! document.

mod schemas;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

pub(crate) use sandyard_core::bounds::MAX_PATH;
use sandyard_core::bounds::{
    MAX_MAP_ENTRIES, MAX_MAP_KEY, MAX_MAP_VALUE, MAX_PROVIDER, MAX_SECRET_NAME, MAX_VOLUME_NAME,
};
use sandyard_core::size::Size;
use sandyard_core::time_span;
use sandyard_service::{ServiceError, ServiceResult};
use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use schemas::integer;
pub(crate) use schemas::{
    count_schema, cpu_limit_schema, disk_limit_schema, env_schema, key_life_schema,
    life_seconds_schema, memory_limit_schema, metadata_changes_schema, metadata_schema,
    path_schema, pids_schema, port_schema, sandbox_id_schema, secrets_schema, volumes_schema,
};

/// Largest number of names of metadata in a filter.
const MAX_FILTERS: usize = 16;

/// Longest argument of a program: `MAX_ARG_STRLEN` of Linux without the closing NUL.
pub(crate) const MAX_ARGUMENT: usize = 131_071;

/// A whole number between two bounds. `3.0` is accepted too: JSON has one type of number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct BoundedInt<const MIN: i64, const MAX: i64>(pub(crate) i64);

impl<'de, const MIN: i64, const MAX: i64> Deserialize<'de> for BoundedInt<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = f64;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number")
            }
            fn visit_f64<E>(self, value: f64) -> Result<f64, E> {
                Ok(value)
            }
            fn visit_i64<E>(self, value: i64) -> Result<f64, E> {
                Ok(value as f64)
            }
            fn visit_u64<E>(self, value: u64) -> Result<f64, E> {
                Ok(value as f64)
            }
        }
        Self::new(deserializer.deserialize_f64(Number)?)
    }
}

impl<const MIN: i64, const MAX: i64> BoundedInt<MIN, MAX> {
    fn new<E: serde::de::Error>(number: f64) -> Result<Self, E> {
        if number.fract() != 0.0 || !(MIN as f64..=MAX as f64).contains(&number) {
            return Err(E::custom(format_args!(
                "must be a whole number between {MIN} and {MAX} (got {number})"
            )));
        }
        Ok(Self(number as i64))
    }
}

impl<const MIN: i64, const MAX: i64> PartialSchema for BoundedInt<MIN, MAX> {
    fn schema() -> RefOr<Schema> {
        integer(MIN, MAX).into()
    }
}

impl<const MIN: i64, const MAX: i64> ToSchema for BoundedInt<MIN, MAX> {
    fn name() -> Cow<'static, str> {
        Cow::Owned(format!("Integer{MIN}To{MAX}"))
    }
}

/// Longest timeout that a request may ask for, in seconds: one year. The service enforces the operator's maximum, which is
/// usually lower (`lifecycle.max_timeout`).
pub(crate) const MAX_SECONDS: i64 = 31_536_000;
/// Idle timeout of a sandbox, in seconds. Text like `1h` is accepted too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LifeSeconds(u64);
/// A TCP port.
pub(crate) type PortNumber = BoundedInt<1, 65_535>;

impl PortNumber {
    pub(crate) fn get(self) -> u16 {
        u16::try_from(self.0).expect("the bounds of the type are those of a port")
    }
}

impl<'de> Deserialize<'de> for LifeSeconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Span;
        impl Visitor<'_> for Span {
            type Value = f64;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("seconds, or a time span like `30m`")
            }
            fn visit_f64<E>(self, value: f64) -> Result<f64, E> {
                Ok(value)
            }
            fn visit_i64<E>(self, value: i64) -> Result<f64, E> {
                Ok(value as f64)
            }
            fn visit_u64<E>(self, value: u64) -> Result<f64, E> {
                Ok(value as f64)
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<f64, E> {
                let invalid = || E::invalid_value(serde::de::Unexpected::Str(text), &self);
                Ok(time_span::seconds(text).ok_or_else(invalid)? as f64)
            }
        }
        let seconds = BoundedInt::<1, MAX_SECONDS>::new(deserializer.deserialize_any(Span)?)?;
        Ok(Self(seconds.0.unsigned_abs()))
    }
}

impl LifeSeconds {
    pub(crate) fn as_duration(self) -> std::time::Duration {
        std::time::Duration::from_secs(self.0)
    }
}

/// Checks the length of a text, in characters as JSON Schema counts them, and that it contains no NUL.
pub(crate) fn text(field: &'static str, value: &str, min: usize, max: usize) -> ServiceResult<()> {
    let length = value.chars().count();
    if !(min..=max).contains(&length) {
        return Err(ServiceError::invalid(
            field,
            format!("`{field}` must have {min} to {max} characters (got {length})"),
        ));
    }
    if value.contains('\0') {
        return Err(ServiceError::invalid(
            field,
            format!("`{field}` must not contain a NUL character"),
        ));
    }
    Ok(())
}

/// Checks a text, if it is present.
pub(crate) fn optional_text(
    field: &'static str,
    value: Option<&str>,
    min: usize,
    max: usize,
) -> ServiceResult<()> {
    value.map_or(Ok(()), |value| text(field, value, min, max))
}

/// Checks the form of a provider's name. The service knows which providers exist.
pub(crate) fn provider(name: Option<&str>) -> ServiceResult<()> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_good =
        |name: &str| (1..=MAX_PROVIDER).contains(&name.len()) && name.bytes().all(is_plain);
    match name {
        Some(name) if !is_good(name) => Err(ServiceError::invalid(
            "provider",
            format!(
                "`provider` must be a provider's name like `docker`: 1 to {MAX_PROVIDER} lower-case letters, digits and dashes"
            ),
        )),
        _ => Ok(()),
    }
}

/// Checks a path inside a sandbox. The agent resolves the path inside the sandbox, so `..` cannot lead out of it.
pub(crate) fn path(field: &'static str, value: &str) -> ServiceResult<()> {
    text(field, value, 1, MAX_PATH)
}

/// Checks that a number lies between two bounds.
pub(crate) fn number(field: &'static str, value: f64, min: f64, max: f64) -> ServiceResult<()> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(ServiceError::invalid(
        field,
        format!("`{field}` must be between {min} and {max} (got {value})"),
    ))
}

/// Checks the timeout of a command.
pub(crate) fn command_seconds(seconds: f64) -> ServiceResult<()> {
    number("timeout", seconds, 0.001, MAX_SECONDS as f64)
}

/// Checks environment variables.
pub(crate) fn env(field: &'static str, env: &BTreeMap<String, String>) -> ServiceResult<()> {
    entries(field, env.len())?;
    for (name, value) in env {
        text(field, name, 1, MAX_MAP_KEY)?;
        text(field, value, 0, MAX_MAP_VALUE)?;
        if name.contains('=') {
            return Err(ServiceError::invalid(
                field,
                format!("`{name}` in `{field}` is not a valid variable name: it contains `=`"),
            ));
        }
    }
    Ok(())
}

/// Checks the map from environment variables to names of secrets.
pub(crate) fn secrets(
    field: &'static str,
    secrets: &BTreeMap<String, String>,
) -> ServiceResult<()> {
    env(field, secrets)?;
    secrets
        .values()
        .try_for_each(|name| text(field, name, 1, MAX_SECRET_NAME))
}

/// Checks the map from mount paths to names of volumes.
pub(crate) fn volumes(
    field: &'static str,
    volumes: &BTreeMap<String, String>,
) -> ServiceResult<()> {
    entries(field, volumes.len())?;
    for (path, name) in volumes {
        text(field, path, 1, MAX_MAP_KEY)?;
        text(field, name, 1, MAX_VOLUME_NAME)?;
    }
    Ok(())
}

fn entries(field: &'static str, count: usize) -> ServiceResult<()> {
    if count <= MAX_MAP_ENTRIES {
        return Ok(());
    }
    Err(ServiceError::invalid(
        field,
        format!("`{field}` must have at most {MAX_MAP_ENTRIES} entries (got {count})"),
    ))
}

/// A value of the metadata map. Numbers and booleans are stored as text.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum MetadataValue {
    Text(String),
    Flag(bool),
    Number(serde_json::Number),
}

/// Checks metadata and converts its values to text.
pub(crate) fn metadata(
    field: &'static str,
    metadata: BTreeMap<String, MetadataValue>,
) -> ServiceResult<BTreeMap<String, String>> {
    entries(field, metadata.len())?;
    metadata
        .into_iter()
        .map(|(name, value)| {
            let value = match value {
                MetadataValue::Text(text) => text,
                MetadataValue::Flag(flag) => flag.to_string(),
                MetadataValue::Number(number) => number.to_string(),
            };
            text(field, &name, 1, MAX_MAP_KEY)?;
            text(field, &value, 0, MAX_MAP_VALUE)?;
            Ok((name, value))
        })
        .collect()
}

/// Checks filters by metadata.
pub(crate) fn metadata_filters(
    filters: BTreeMap<String, String>,
) -> ServiceResult<BTreeMap<String, String>> {
    for (name, value) in &filters {
        text("metadata", name, 1, MAX_MAP_KEY)?;
        text("metadata", value, 0, 4096)?;
    }
    if filters.len() > MAX_FILTERS {
        return Err(ServiceError::invalid(
            "metadata",
            format!("at most {MAX_FILTERS} names of metadata can be filtered by"),
        ));
    }
    Ok(filters)
}

/// Changes of the metadata map: a label without a value is removed.
pub(crate) fn metadata_changes(
    field: &'static str,
    changes: BTreeMap<String, Option<MetadataValue>>,
) -> ServiceResult<BTreeMap<String, Option<String>>> {
    let removed: Vec<String> = changes
        .iter()
        .filter(|(_, value)| value.is_none())
        .map(|(name, _)| name.clone())
        .collect();
    let set = changes
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    let set = metadata(field, set.collect())?.into_iter();
    let set = set.map(|(name, value)| (name, Some(value)));
    Ok(set
        .chain(removed.into_iter().map(|name| (name, None)))
        .collect())
}

/// Memory limit: `2g`, `512m`, or a number of MiB.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum MemoryLimit {
    Text(String),
    Mib(f64),
}

impl MemoryLimit {
    pub(crate) fn bytes(&self) -> ServiceResult<u64> {
        match self {
            Self::Text(text) => text
                .parse::<Size>()
                .map(|size| size.0)
                .map_err(|error| ServiceError::invalid("memory_limit", error.to_string())),
            Self::Mib(number) => {
                self::number("memory_limit", *number, 16.0, 65_536.0)?;
                Ok((number * 1_048_576.0) as u64)
            }
        }
    }
}

/// Parses the size of a disk.
pub(crate) fn disk_bytes(text: &str) -> ServiceResult<u64> {
    text.parse::<Size>()
        .map(|size| size.0)
        .map_err(|error| ServiceError::invalid("disk_limit", error.to_string()))
}

/// CPU limit in cores: `"2.0"` or a number.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum CpuLimit {
    Text(String),
    Cores(f64),
}

impl CpuLimit {
    pub(crate) fn millis(&self) -> ServiceResult<u32> {
        let cores = match self {
            Self::Text(text) => text.trim().parse().map_err(|_| {
                ServiceError::invalid(
                    "cpu_limit",
                    "`cpu_limit` must be a number of cores, like `2.0`",
                )
            })?,
            Self::Cores(cores) => *cores,
        };
        number("cpu_limit", cores, 0.01, 64.0)?;
        Ok((cores * 1000.0).round() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_a_number_of_seconds_or_a_time_span() {
        let read = |text: &str| serde_json::from_str::<LifeSeconds>(text).map(|value| value.0);
        for text in ["60.0", "\"60\"", "\"1m\""] {
            assert_eq!(read(text).unwrap(), 60, "{text}");
        }
        for text in [
            "0", "31536001", "1.5", "\"soon\"", "\"366d\"", "null", "1e300",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn limits_are_parsed_from_text_and_numbers() {
        assert_eq!(MemoryLimit::Text("2g".to_owned()).bytes().unwrap(), 2 << 30);
        assert_eq!(MemoryLimit::Mib(512.0).bytes().unwrap(), 512 << 20);
        assert_eq!(CpuLimit::Text("1.5".to_owned()).millis().unwrap(), 1500);
        assert!(CpuLimit::Cores(f64::NAN).millis().is_err());
        assert!(MemoryLimit::Text("lots".to_owned()).bytes().is_err());
    }
}
