//! What an operator decides: `settings.json` in the data directory, read when the launcher starts.
//!
//! ```json
//! { "default_limits": { "memory": "1g", "cpu": 1 }, "max_limits": { "memory": "8g", "cpu": 4, "pids": 4096, "disk": "20g" } }
//! ```
//!
//! What is not said stays as it is built in.

use std::io;
use std::path::Path;

use sandyard_core::Limits;
use sandyard_core::size::Size;
use serde::Deserialize;

use crate::error::{EngineError, ErrorKind, Result};

/// The limits in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// What a sandbox gets when nothing is asked for.
    pub(crate) default_limits: Limits,
    /// The most a caller may ask for.
    pub(crate) max_limits: Limits,
}

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
    /// Reads the file; none is fine, a wrong one is not: nobody wants limits other than those written down.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => "{}".to_owned(),
            other => other.map_err(|error| {
                EngineError::failed(format!("reading `{}`", path.display()), &error)
            })?,
        };
        Self::parse(&text).map_err(|problem| {
            EngineError::new(
                ErrorKind::Invalid,
                format!("`{}`: {problem}", path.display()),
            )
        })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let max_limits = file.max_limits.over(Limits::MOST)?;
        // A default beyond the maximum is brought down, so that lowering the maximum alone is enough.
        let built_in = Limits::default();
        let base = Limits {
            memory_bytes: built_in.memory_bytes.min(max_limits.memory_bytes),
            cpu_millis: built_in.cpu_millis.min(max_limits.cpu_millis),
            pids: built_in.pids.min(max_limits.pids),
            disk_bytes: built_in.disk_bytes.min(max_limits.disk_bytes),
        };
        let default_limits = file.default_limits.over(base)?;
        max_limits
            .check(&Limits {
                memory_bytes: u64::MAX,
                cpu_millis: u32::MAX,
                pids: u32::MAX,
                disk_bytes: u64::MAX,
            })
            .map_err(|error| format!("max_limits: {error}"))?;
        default_limits
            .check(&max_limits)
            .map_err(|error| format!("default_limits: {error}"))?;
        Ok(Self {
            default_limits,
            max_limits,
        })
    }
}

impl LimitsFile {
    fn over(&self, mut limits: Limits) -> Result<Limits, String> {
        let bytes = |text: &str| {
            text.parse::<Size>()
                .map(|size| size.0)
                .map_err(|error| error.to_string())
        };
        if let Some(text) = &self.memory {
            limits.memory_bytes = bytes(text)?;
        }
        if let Some(text) = &self.disk {
            limits.disk_bytes = bytes(text)?;
        }
        if let Some(cores) = self.cpu {
            limits.cpu_millis = (cores * 1000.0) as u32;
        }
        limits.pids = self.pids.unwrap_or(limits.pids);
        Ok(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_said_is_what_is_built_in() {
        let settings = Settings::parse("{}").expect("parse");
        assert_eq!(
            (settings.default_limits, settings.max_limits),
            (Limits::default(), Limits::MOST)
        );
    }

    #[test]
    fn what_is_said_counts_and_the_rest_stays() {
        let text =
            r#"{"default_limits": {"memory": "1g", "cpu": 0.5}, "max_limits": {"disk": "1g"}}"#;
        let settings = Settings::parse(text).expect("parse");
        assert_eq!(settings.default_limits.memory_bytes, 1 << 30);
        assert_eq!(settings.default_limits.cpu_millis, 500);
        assert_eq!(
            settings.default_limits.disk_bytes,
            1 << 30,
            "brought down to the maximum"
        );
        assert_eq!(settings.max_limits.memory_bytes, Limits::MOST.memory_bytes);
    }

    #[test]
    fn a_mistake_is_named() {
        for (text, problem) in [
            (r#"{"max_limit": {}}"#, "unknown field"),
            (r#"{"max_limits": {"memory": "lots"}}"#, "not a size"),
            (r#"{"max_limits": {"memory": "1k"}}"#, "max_limits: memory"),
            (
                r#"{"default_limits": {"memory": "9g"}, "max_limits": {"memory": "8g"}}"#,
                "default_limits: memory",
            ),
        ] {
            let said = Settings::parse(text).expect_err(text);
            assert!(said.contains(problem), "{said}");
        }
    }
}
