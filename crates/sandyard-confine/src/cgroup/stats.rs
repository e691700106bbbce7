//! Reads what a group has used.

use serde::{Deserialize, Serialize};

use super::tree::Tree;
use crate::cgroup::Result;

/// What a sandbox uses now and has used. A figure the host does not count is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stats {
    /// Memory in use, page cache included.
    pub memory_bytes: Option<u64>,
    /// The most memory ever in use.
    pub memory_peak_bytes: Option<u64>,
    /// Of the memory in use: page cache, which the kernel takes back when it is needed.
    pub memory_cache_bytes: Option<u64>,
    /// Processor time used, in microseconds.
    pub cpu_usage_us: Option<u64>,
    /// Processes and threads now.
    pub pids: Option<u64>,
    /// Processes killed for going over the memory limit.
    pub oom_kills: Option<u64>,
}

/// Adds what this tree knows. A file that an older kernel lacks leaves its figure out; a missing group is an error.
pub(super) fn collect(tree: &Tree, group: &str, stats: &mut Stats) -> Result<()> {
    let text = |name: &str| tree.read_at(&format!("{group}/{name}")).unwrap_or_default();
    if tree.jobs.memory {
        let (current, peak, cache, events) = match tree.is_v2 {
            true => ("memory.current", "memory.peak", "file", "memory.events"),
            false => (
                "memory.usage_in_bytes",
                "memory.max_usage_in_bytes",
                "total_cache",
                "memory.oom_control",
            ),
        };
        stats.memory_bytes = number(&tree.read(&format!("{group}/{current}"))?);
        stats.memory_peak_bytes = number(&text(peak));
        stats.memory_cache_bytes = field(&text("memory.stat"), cache);
        stats.oom_kills = field(&text(events), "oom_kill");
    }
    if tree.jobs.cpu_time {
        stats.cpu_usage_us = match tree.is_v2 {
            true => field(&text("cpu.stat"), "usage_usec"),
            false => number(&text("cpuacct.usage")).map(|nanoseconds| nanoseconds / 1000),
        };
    }
    if tree.jobs.pids {
        stats.pids = number(&tree.read(&format!("{group}/pids.current"))?);
    }
    Ok(())
}

pub(super) fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// Finds a `name value` line.
pub(super) fn field(text: &str, name: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').and_then(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_is_found_by_its_whole_name() {
        let text = "oom 1\noom_kill_disable 0\noom_kill 7\n";
        assert_eq!(field(text, "oom_kill"), Some(7));
        assert_eq!(field(text, "absent"), None);
    }

    #[test]
    fn unlimited_is_no_number() {
        assert_eq!(number("max\n"), None);
        assert_eq!(number("12\n"), Some(12));
    }
}
