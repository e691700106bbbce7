//! Resource usage of instances: current and past.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::provider::{Result, unsupported};

/// Resource usage of a provider's instances.
#[async_trait]
pub trait UsageReports: Send + Sync + 'static {
    /// Current usage of an instance.
    async fn usage(&self, id: &str) -> Result<Usage>;

    /// Usage between two moments, oldest first, as far back as the provider recorded it. Requires
    /// [`can_recall_usage`](crate::Capabilities::can_recall_usage).
    async fn usage_history(&self, id: &str, from_ms: i64, to_ms: i64) -> Result<Vec<UsagePoint>> {
        let _ = (id, from_ms, to_ms);
        Err(unsupported("keep a history of usage"))
    }
}

/// Current usage of an instance. `None`: this provider does not measure it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Memory in bytes, page cache included.
    pub memory_bytes: Option<u64>,
    /// The part of it that is page cache, in bytes.
    pub memory_cache_bytes: Option<u64>,
    /// Processor time used so far, in microseconds.
    pub cpu_usage_us: Option<u64>,
    /// Number of processes and threads.
    pub pids: Option<u64>,
    /// Bytes written on top of the template.
    pub disk_bytes: Option<u64>,
    /// Number of processes the kernel killed for lack of memory.
    pub oom_kills: Option<u64>,
}

/// Usage of an instance over a few seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UsagePoint {
    /// Time of the measurement, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Processor time used since the previous point, in percent of what the limit allows: 100 is all of it, however many
    /// processors that is, as E2B's `cpuUsedPct` counts. The first point after a start is zero. It may exceed 100 where the
    /// provider does not enforce limits.
    pub cpu_percent: f32,
    /// Memory in bytes, without page cache.
    pub memory_bytes: u64,
    /// Page cache in bytes.
    pub cache_bytes: u64,
    /// Bytes written on top of the template.
    pub disk_bytes: u64,
}
