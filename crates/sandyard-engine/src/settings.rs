//! The operator's settings: `settings.json` in the data directory, read when the launcher starts.
//!
//! ```json
//! { "default_limits": { "memory": "1g", "cpu": 1 }, "max_limits": { "memory": "8g", "cpu": 4, "pids": 4096, "disk": "20g" } }
//! ```
//!
//! Maxima that it leaves open follow from the host. Nobody may exceed those in the file; the others are what callers get as maxima,
//! and a server whose operator wants more may ask for more.

use std::io;
use std::path::Path;

use sandyard_core::size::Size;
use sandyard_core::{LimitPolicy, Limits, PartialLimits};
use serde::Deserialize;

use crate::error::{EngineError, ErrorKind, Result};

/// The limits in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Limits of a sandbox whose creator asks for none.
    pub(crate) default_limits: Limits,
    /// The highest limits that users may ask for.
    pub(crate) max_limits: Limits,
    /// Limits that nobody may exceed.
    pub(crate) hard_limits: Limits,
}

/// Beyond what any machine has: a number above is a mistake, and the kernel would take some of them for no limit.
const UNBOUNDED: Limits = Limits {
    memory_bytes: 1 << 50,
    cpu_millis: 4_000_000,
    pids: 4_194_304,
    disk_bytes: 1 << 50,
};

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    default_limits: LimitsFile,
    max_limits: LimitsFile,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LimitsFile {
    memory: Option<String>,
    cpu: Option<f64>,
    pids: Option<u32>,
    disk: Option<String>,
}

impl Settings {
    /// Reads the file; `host` has the maxima that follow from the host. No file is fine, a wrong one is not: nobody wants limits other than those written down.
    pub(crate) fn read(path: &Path, host: &Limits) -> Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => "{}".to_owned(),
            other => other.map_err(|error| {
                EngineError::failed(format!("reading `{}`", path.display()), &error)
            })?,
        };
        Self::parse(&text, host).map_err(|problem| {
            EngineError::new(
                ErrorKind::Invalid,
                format!("`{}`: {problem}", path.display()),
            )
        })
    }

    fn parse(text: &str, host: &Limits) -> Result<Self, String> {
        let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let policy = LimitPolicy {
            default: file.default_limits.read()?,
            max: file.max_limits.read()?,
        };
        let hard_limits = policy.max.or(&UNBOUNDED);
        let (default_limits, max_limits) = policy.resolve(host);
        max_limits
            .check(&UNBOUNDED)
            .map_err(|error| format!("max_limits: {error}"))?;
        // As it was written down, and not as it was brought down.
        policy
            .default
            .or(&default_limits)
            .check(&max_limits)
            .map_err(|error| format!("default_limits: {error}"))?;
        Ok(Self {
            default_limits,
            max_limits,
            hard_limits,
        })
    }
}

impl LimitsFile {
    fn read(&self) -> Result<PartialLimits, String> {
        let bytes = |text: &Option<String>| {
            text.as_ref()
                .map(|text| text.parse::<Size>().map(|size| size.0))
                .transpose()
                .map_err(|error| error.to_string())
        };
        Ok(PartialLimits {
            memory_bytes: bytes(&self.memory)?,
            cpu_millis: self.cpu.map(|cores| (cores * 1000.0) as u32),
            pids: self.pids,
            disk_bytes: bytes(&self.disk)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_said_follows_from_the_host() {
        let settings = Settings::parse("{}", &Limits::DEFAULT_MAX).expect("parse");
        assert_eq!(
            (settings.default_limits, settings.max_limits),
            (Limits::default(), Limits::DEFAULT_MAX)
        );
        assert_eq!(settings.hard_limits, UNBOUNDED);
        let small = Limits {
            memory_bytes: 1 << 30,
            ..Limits::DEFAULT_MAX
        };
        let settings = Settings::parse("{}", &small).expect("parse");
        assert_eq!(settings.default_limits.memory_bytes, 1 << 30);
    }

    #[test]
    fn what_is_said_counts_and_the_rest_stays() {
        let text =
            r#"{"default_limits": {"memory": "1g", "cpu": 0.5}, "max_limits": {"disk": "1g"}}"#;
        let settings = Settings::parse(text, &Limits::DEFAULT_MAX).expect("parse");
        assert_eq!(settings.default_limits.memory_bytes, 1 << 30);
        assert_eq!(settings.default_limits.cpu_millis, 500);
        assert_eq!(
            settings.default_limits.disk_bytes,
            1 << 30,
            "brought down to the maximum"
        );
        assert_eq!(
            settings.max_limits.memory_bytes,
            Limits::DEFAULT_MAX.memory_bytes
        );
    }

    #[test]
    fn a_mistake_is_named() {
        for (text, problem) in [
            (r#"{"max_limit": {}}"#, "unknown field"),
            (r#"{"max_limits": {"memory": "lots"}}"#, "not a size"),
            (
                r#"{"max_limits": {"memory": "1k"}}"#,
                "max_limits: `memory_limit`",
            ),
            (
                r#"{"default_limits": {"memory": "9g"}, "max_limits": {"memory": "8g"}}"#,
                "default_limits: `memory_limit`",
            ),
        ] {
            let message = Settings::parse(text, &Limits::DEFAULT_MAX).expect_err(text);
            assert!(message.contains(problem), "{message}");
        }
    }
}
