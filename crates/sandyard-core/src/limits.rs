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
#[error("{field} of {asked} is out of range: allowed is {least} to {most}")]
pub struct LimitsError {
    /// The limit in question.
    pub field: &'static str,
    /// What was asked for.
    pub asked: String,
    /// The least that makes sense.
    pub least: String,
    /// The most the settings allow.
    pub most: String,
}

impl Limits {
    /// The least a sandbox can live on: below this its agent would not start.
    pub const LEAST: Self = Self {
        memory_bytes: 16 << 20,
        cpu_millis: 10,
        pids: 8,
        disk_bytes: 16 << 20,
    };

    /// The most a caller may ask for when the settings say nothing.
    pub const MOST: Self = Self {
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

    /// Checks each limit against the least that works and `most`.
    pub fn check(&self, most: &Self) -> Result<(), LimitsError> {
        let sized = |bytes: u64| Size(bytes).to_string();
        let range = |field, asked: u64, least: u64, most: u64, text: &dyn Fn(u64) -> String| {
            if (least..=most).contains(&asked) {
                return Ok(());
            }
            Err(LimitsError {
                field,
                asked: text(asked),
                least: text(least),
                most: text(most),
            })
        };
        let least = Self::LEAST;
        range(
            "memory",
            self.memory_bytes,
            least.memory_bytes,
            most.memory_bytes,
            &sized,
        )?;
        range(
            "disk",
            self.disk_bytes,
            least.disk_bytes,
            most.disk_bytes,
            &sized,
        )?;
        let cores = |millis: u64| format!("{}.{:03}", millis / 1000, millis % 1000);
        range(
            "cpu",
            self.cpu_millis.into(),
            least.cpu_millis.into(),
            most.cpu_millis.into(),
            &cores,
        )?;
        range(
            "pids",
            self.pids.into(),
            least.pids.into(),
            most.pids.into(),
            &|count| count.to_string(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_in_range() {
        assert_eq!(Limits::default().check(&Limits::MOST), Ok(()));
    }

    #[test]
    fn error_names_the_field_and_the_range() {
        let limits = Limits {
            memory_bytes: 1 << 20,
            ..Limits::default()
        };
        let error = limits.check(&Limits::MOST).unwrap_err();
        assert_eq!(
            error.to_string(),
            "memory of 1m is out of range: allowed is 16m to 64g"
        );
    }
}
