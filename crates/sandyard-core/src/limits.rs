//! How much of the host a sandbox may use.

use serde::{Deserialize, Serialize};

use crate::size::Size;

/// Bounds one sandbox. Every field is enforced by the kernel where the host can; `sandyard doctor` says where it cannot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Memory in bytes, page cache and tmpfs included.
    pub memory_bytes: u64,
    /// Processor time in thousandths of one core: 1500 is one core and a half.
    pub cpu_millis: u32,
    /// Processes and threads at once. A fork bomb stops here.
    pub pids: u32,
    /// Bytes the sandbox may write on top of its template.
    pub disk_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 2 << 30,
            cpu_millis: 2000,
            pids: 1024,
            disk_bytes: 4 << 30,
        }
    }
}

/// Says which limit is out of range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}_limit` must be {allowed} (got {requested})")]
pub struct LimitsError {
    /// The limit in question.
    pub field: &'static str,
    /// The requested value.
    pub requested: String,
    /// The range of valid values.
    pub allowed: String,
}

impl Limits {
    /// The least a sandbox can live on: below this its agent would not start.
    pub const LEAST: Self = Self {
        memory_bytes: 16 << 20,
        cpu_millis: 10,
        pids: 8,
        disk_bytes: 16 << 20,
    };

    /// The maximum where the settings have none and the host's size is not known, as at a cloud.
    pub const DEFAULT_MAX: Self = Self {
        memory_bytes: 64 << 30,
        cpu_millis: 64_000,
        pids: 65_536,
        disk_bytes: 256 << 30,
    };

    /// The smaller of each of two limits.
    #[must_use]
    pub fn least_of(&self, other: &Self) -> Self {
        Self {
            memory_bytes: self.memory_bytes.min(other.memory_bytes),
            cpu_millis: self.cpu_millis.min(other.cpu_millis),
            pids: self.pids.min(other.pids),
            disk_bytes: self.disk_bytes.min(other.disk_bytes),
        }
    }

    /// The larger of each of two limits.
    #[must_use]
    pub fn most_of(&self, other: &Self) -> Self {
        Self {
            memory_bytes: self.memory_bytes.max(other.memory_bytes),
            cpu_millis: self.cpu_millis.max(other.cpu_millis),
            pids: self.pids.max(other.pids),
            disk_bytes: self.disk_bytes.max(other.disk_bytes),
        }
    }

    /// Checks each limit against the least that works and `max`.
    pub fn check(&self, max: &Self) -> Result<(), LimitsError> {
        let sized = |bytes: u64| Size(bytes).readable();
        let range = |field, requested: u64, least: u64, max: u64, text: &dyn Fn(u64) -> String| {
            if (least..=max).contains(&requested) {
                return Ok(());
            }
            Err(LimitsError {
                field,
                requested: text(requested),
                allowed: format!("between {} and {}", text(least), text(max)),
            })
        };
        let least = Self::LEAST;
        range(
            "memory",
            self.memory_bytes,
            least.memory_bytes,
            max.memory_bytes,
            &sized,
        )?;
        range(
            "disk",
            self.disk_bytes,
            least.disk_bytes,
            max.disk_bytes,
            &sized,
        )?;
        let cores = |millis: u64| format!("{} cores", millis as f64 / 1000.0);
        range(
            "cpu",
            self.cpu_millis.into(),
            least.cpu_millis.into(),
            max.cpu_millis.into(),
            &cores,
        )?;
        range(
            "pids",
            self.pids.into(),
            least.pids.into(),
            max.pids.into(),
            &|count| format!("{count} processes"),
        )
    }
}

/// Limits of which some are left open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartialLimits {
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Processor time in thousandths of one core.
    pub cpu_millis: Option<u32>,
    /// Processes and threads at once.
    pub pids: Option<u32>,
    /// Bytes the sandbox may write on top of its template.
    pub disk_bytes: Option<u64>,
}

impl PartialLimits {
    /// Fills in what is left open.
    #[must_use]
    pub fn or(&self, rest: &Limits) -> Limits {
        Limits {
            memory_bytes: self.memory_bytes.unwrap_or(rest.memory_bytes),
            cpu_millis: self.cpu_millis.unwrap_or(rest.cpu_millis),
            pids: self.pids.unwrap_or(rest.pids),
            disk_bytes: self.disk_bytes.unwrap_or(rest.disk_bytes),
        }
    }
}

/// What an operator has decided about limits; all of it may be left open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitPolicy {
    /// Limits of a sandbox whose request has none.
    pub default: PartialLimits,
    /// The largest limits that a request may have.
    pub max: PartialLimits,
}

impl LimitPolicy {
    /// The default and maximum limits in force, where `max` holds for maxima that are left open.
    ///
    /// A configured default raises such a maximum. A default that is not configured is lowered to the maximum.
    #[must_use]
    pub fn resolve(&self, max: &Limits) -> (Limits, Limits) {
        let decided = self.default.or(&Limits::LEAST);
        let max = self.max.or(&max.most_of(&decided));
        let default = self.default.or(&Limits::default()).least_of(&max);
        (default, max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_operator_decided_goes_above_what_follows_from_the_host() {
        let host = Limits {
            memory_bytes: 1 << 30,
            cpu_millis: 1000,
            ..Limits::DEFAULT_MAX
        };
        let (default, max) = LimitPolicy::default().resolve(&host);
        assert_eq!((default.memory_bytes, max.memory_bytes), (1 << 30, 1 << 30));
        assert_eq!((default.cpu_millis, max.cpu_millis), (1000, 1000));
        let policy = LimitPolicy {
            default: PartialLimits {
                cpu_millis: Some(4000),
                ..PartialLimits::default()
            },
            max: PartialLimits {
                memory_bytes: Some(8 << 30),
                ..PartialLimits::default()
            },
        };
        let (default, max) = policy.resolve(&host);
        assert_eq!((default.memory_bytes, max.memory_bytes), (2 << 30, 8 << 30));
        assert_eq!((default.cpu_millis, max.cpu_millis), (4000, 4000));
    }

    #[test]
    fn defaults_are_in_range() {
        assert_eq!(Limits::default().check(&Limits::DEFAULT_MAX), Ok(()));
    }

    #[test]
    fn error_names_the_field_and_the_range() {
        let limits = Limits {
            memory_bytes: 1 << 20,
            ..Limits::default()
        };
        let error = limits.check(&Limits::DEFAULT_MAX).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`memory_limit` must be between 16 MiB and 64 GiB (got 1 MiB)"
        );
    }
}
