//! Resource usage of instances: current and past.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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

/// Current resource usage of a sandbox. A value that the provider does not measure is null.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// Memory in use in bytes, page cache included.
    pub memory_bytes: Option<u64>,
    /// Page cache in bytes, part of `memory_bytes`.
    pub memory_cache_bytes: Option<u64>,
    /// CPU time used since the start, in microseconds.
    pub cpu_usage_us: Option<u64>,
    /// Number of processes and threads.
    pub pids: Option<u64>,
    /// Number of bytes written on top of the template.
    pub disk_bytes: Option<u64>,
    /// Number of processes that the kernel killed because memory ran out.
    pub oom_kills: Option<u64>,
}

/// Resource usage at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsagePoint {
    /// Time of the measurement, in milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
    /// CPU time used since the previous point, in percent of the sandbox's CPU limit: 100 is all of it, however many cores
    /// that is. 0 at the first point after a start. More than 100 is possible where the provider does not enforce limits.
    pub cpu_percent: f32,
    /// Memory in use in bytes, page cache excluded.
    pub memory_bytes: u64,
    /// Page cache in bytes.
    pub cache_bytes: u64,
    /// Number of bytes written on top of the template.
    pub disk_bytes: u64,
}
