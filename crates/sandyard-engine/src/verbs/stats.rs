//! Reads what a sandbox uses.

use sandyard_core::SandboxId;

use crate::context::{Context, not_found};
use crate::disk;
use crate::error::Result;
use crate::record::Record;
use crate::spec::SandboxStats;

/// Reads the counters of its cgroup and its disk.
pub(crate) fn stats(ctx: &Context, id: &SandboxId) -> Result<SandboxStats> {
    let dir = ctx.data.sandbox(id);
    let record = Record::read(&dir)?.ok_or_else(|| not_found(id))?;
    let mut stats = SandboxStats {
        disk_bytes: disk::used_bytes(&dir, &record.disk),
        ..SandboxStats::default()
    };
    if let Ok(counters) = ctx
        .cgroups
        .open(id.as_str())
        .and_then(|cgroup| cgroup.stats())
    {
        stats.memory_bytes = counters.memory_bytes;
        stats.memory_cache_bytes = counters.memory_cache_bytes;
        stats.cpu_usage_us = counters.cpu_usage_us;
        stats.pids = counters.pids;
        stats.oom_kills = counters.oom_kills;
    }
    Ok(stats)
}
