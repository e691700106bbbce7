//! Resource use of the sandbox.
//!
//! It is read from the cgroup's files where the sandbox has them, else from `/proc` for the whole machine.

use std::cell::Cell;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use sandyard_wire::http::Metrics;

use crate::fs;

/// Largest of the files read here.
const MAX_FILE_BYTES: usize = 256 * 1024;

/// The kernel's unit of processor time in `/proc`, on every architecture.
const TICKS_PER_SECOND: f64 = 100.0;

/// Measures resource use; processor use is relative to the previous measurement.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    last: Cell<Option<CpuTime>>,
}

/// Processor time at one moment.
#[derive(Debug, Clone, Copy)]
struct CpuTime {
    busy_seconds: f64,
    at: Instant,
}

impl Meter {
    /// Measures now.
    pub(crate) fn read(&self) -> Metrics {
        let cpu_count = cpu_count();
        let memory = Memory::read();
        let (disk_used, disk_total) = disk();
        let ts = SystemTime::now().duration_since(UNIX_EPOCH);
        Metrics {
            ts: ts.map_or(0, |ts| i64::try_from(ts.as_secs()).unwrap_or(i64::MAX)),
            cpu_count,
            cpu_used_pct: self.cpu_used_pct(cpu_count),
            mem_total: memory.total,
            mem_used: memory.used,
            mem_cache: memory.cache,
            disk_used,
            disk_total,
        }
    }

    fn cpu_used_pct(&self, cpu_count: u32) -> f64 {
        let now = CpuTime {
            busy_seconds: busy_seconds(),
            at: Instant::now(),
        };
        let Some(last) = self.last.replace(Some(now)) else {
            return 0.0;
        };
        let elapsed = (now.at - last.at).as_secs_f64();
        let share = (now.busy_seconds - last.busy_seconds) / elapsed.max(0.001);
        let percent = 100.0 * share / f64::from(cpu_count.max(1));
        (percent.clamp(0.0, 100.0) * 100.0).round() / 100.0
    }
}

struct Memory {
    total: u64,
    used: u64,
    cache: u64,
}

impl Memory {
    fn read() -> Self {
        let meminfo = text("/proc/meminfo").unwrap_or_default();
        let kib = |name| field(&meminfo, name).unwrap_or(0) * 1024;
        let (total, available) = (kib("MemTotal:"), kib("MemAvailable:"));
        let whole = Self {
            total,
            used: total.saturating_sub(available),
            cache: kib("Cached:") + kib("Buffers:"),
        };
        Self::of_cgroup(total).unwrap_or(whole)
    }

    fn of_cgroup(machine: u64) -> Option<Self> {
        let number = |path: &str| text(path)?.trim().parse::<u64>().ok();
        let (current, limit, stat, cache) = match number("/sys/fs/cgroup/memory.current") {
            Some(current) => (
                current,
                number("/sys/fs/cgroup/memory.max"),
                text("/sys/fs/cgroup/memory.stat"),
                "file ",
            ),
            None => (
                number("/sys/fs/cgroup/memory/memory.usage_in_bytes")?,
                number("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
                text("/sys/fs/cgroup/memory/memory.stat"),
                "total_cache ",
            ),
        };
        let cache = field(&stat.unwrap_or_default(), cache.trim()).unwrap_or(0);
        Some(Self {
            total: limit.unwrap_or(machine).min(machine),
            used: current.saturating_sub(cache),
            cache,
        })
    }
}

/// The number after a name at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        (fields.next() == Some(name)).then(|| fields.next()?.parse().ok())?
    })
}

/// Bytes used and bytes there are of the file system that holds the root.
fn disk() -> (u64, u64) {
    let Ok(disk) = rustix::fs::statvfs("/") else {
        return (0, 0);
    };
    let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
    let used = disk.f_blocks.saturating_sub(disk.f_bfree);
    (bytes(used), bytes(disk.f_blocks))
}

fn cpu_count() -> u32 {
    let allowed = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count());
    let quota = text("/sys/fs/cgroup/cpu.max").and_then(|line| {
        let (quota, period) = line.trim().split_once(' ')?;
        let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
        u32::try_from(quota.div_ceil(period.max(1))).ok()
    });
    quota.unwrap_or(allowed).clamp(1, allowed.max(1))
}

fn busy_seconds() -> f64 {
    let cgroup = text("/sys/fs/cgroup/cpu.stat").and_then(|stat| field(&stat, "usage_usec"));
    if let Some(micros) = cgroup {
        return micros as f64 / 1e6;
    }
    let stat = text("/proc/stat").unwrap_or_default();
    let mut ticks = stat
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1)
        .map(|word| word.parse::<u64>().unwrap_or(0));
    // user, nice, system; then idle and iowait, which are not work; then irq, softirq, steal.
    let worked: u64 = ticks.by_ref().take(3).sum::<u64>() + ticks.skip(2).take(3).sum::<u64>();
    worked as f64 / TICKS_PER_SECOND
}

fn text(path: &str) -> Option<String> {
    let bytes = fs::read_small(Path::new(path), MAX_FILE_BYTES).ok()?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_makes_sense() {
        let meter = Meter::default();
        let first = meter.read();
        assert!(first.cpu_count >= 1 && first.mem_total > 0 && first.ts > 0);
        assert!(first.mem_used <= first.mem_total && first.disk_used <= first.disk_total);
        assert!((0.0..=100.0).contains(&meter.read().cpu_used_pct));
    }

    #[test]
    fn fields_are_found_by_name() {
        assert_eq!(field("a 1\nab 2\n", "ab"), Some(2));
        assert_eq!(field("a 1\n", "c"), None);
    }
}
