//! What this host has to share out, and how much of it one sandbox may ask for.

use std::fs;
use std::path::{Path, PathBuf};

use sandyard_core::Limits;

use crate::cgroup::OwnGroups;

/// One sandbox may ask for this part of the host's memory and disk.
const HALF: u64 = 2;
/// And for this part of its process ids.
const QUARTER: u32 = 4;
/// Kept free for the host itself by default: this many bytes, or this many hundredths of its memory.
const LEAST_RESERVE: u64 = 256 << 20;
const RESERVE_PERCENT: u64 = 3;
const MIB: u64 = 1 << 20;

/// The resources of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostResources {
    /// Memory in bytes: of the host, or of the cgroup this process is in.
    pub memory_bytes: u64,
    /// Thousandths of a processor core.
    pub cpu_millis: u32,
    /// Processes and threads.
    pub pids: u32,
    /// Size of the file system with the data, in bytes.
    pub disk_bytes: u64,
}

impl HostResources {
    /// Reads them. `data_dir`, or a folder above it, must exist. What cannot be read counts as unlimited.
    pub fn read(data_dir: &Path) -> Self {
        let groups = OwnGroups::find();
        let memory = meminfo("MemTotal").unwrap_or(u64::MAX);
        let pids = [
            number(Path::new("/proc/sys/kernel/pid_max")),
            number(Path::new("/proc/sys/kernel/threads-max")),
            groups.least("pids", "pids.max", "pids.max"),
        ];
        let pids = pids.into_iter().flatten().min().unwrap_or(u64::MAX);
        // Respects CPU affinity and quota.
        let cores = std::thread::available_parallelism().map_or(u32::MAX / 1000, |count| {
            u32::try_from(count.get()).unwrap_or(u32::MAX / 1000)
        });
        Self {
            memory_bytes: groups
                .memory_limit()
                .map_or(memory, |limit| limit.min(memory)),
            cpu_millis: cores.saturating_mul(1000),
            pids: u32::try_from(pids).unwrap_or(u32::MAX),
            disk_bytes: file_system_size(data_dir).unwrap_or(u64::MAX),
        }
    }

    /// Maximum limits of one sandbox, unless the operator sets others.
    ///
    /// The size of the disk counts and not its free space, so that the same request is not accepted today and refused tomorrow;
    /// free space is checked whenever a sandbox is made.
    pub fn max_limits(&self) -> Limits {
        let half = |bytes: u64| bytes / HALF / MIB * MIB;
        Limits {
            memory_bytes: half(self.memory_bytes),
            cpu_millis: self.cpu_millis,
            pids: self.pids / QUARTER,
            disk_bytes: half(self.disk_bytes),
        }
        .most_of(&Limits::LEAST)
    }

    /// Memory that is kept free for the host if the operator does not say.
    pub fn memory_reserve(&self) -> u64 {
        (self.memory_bytes / 100 * RESERVE_PERCENT).max(LEAST_RESERVE)
    }
}

/// Tells how much memory can be had, each time it is asked.
#[derive(Clone, Debug)]
pub struct MemoryGauge {
    groups: OwnGroups,
}

impl MemoryGauge {
    /// Finds out where to look.
    pub fn open() -> Self {
        let mut groups = OwnGroups::find();
        groups.keep_limited();
        Self { groups }
    }

    /// Bytes that programs could still get without swapping; `None` if the host does not say.
    pub fn available(&self) -> Option<u64> {
        let host = meminfo("MemAvailable");
        [host, self.groups.available_memory()]
            .into_iter()
            .flatten()
            .min()
    }
}

/// Reads a line of `/proc/meminfo`, in bytes.
fn meminfo(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn file_system_size(path: &Path) -> Option<u64> {
    let folder: PathBuf = std::path::absolute(path).ok()?;
    let existing = folder.ancestors().find(|folder| folder.is_dir())?;
    let stat = rustix::fs::statvfs(existing).ok()?;
    Some(stat.f_blocks * stat.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maxima_follow_the_host() {
        let host = HostResources {
            memory_bytes: 24 << 30,
            cpu_millis: 2000,
            pids: 32_768,
            disk_bytes: 100 << 30,
        };
        let expected = Limits {
            memory_bytes: 12 << 30,
            cpu_millis: 2000,
            pids: 8192,
            disk_bytes: 50 << 30,
        };
        assert_eq!(host.max_limits(), expected);
        assert_eq!(host.memory_reserve() / MIB, 737);
    }

    #[test]
    fn the_smallest_host_still_has_room_for_the_smallest_sandbox() {
        let host = HostResources {
            memory_bytes: 1 << 20,
            cpu_millis: 0,
            pids: 4,
            disk_bytes: 0,
        };
        assert_eq!(host.max_limits(), Limits::LEAST);
        assert_eq!(host.memory_reserve(), LEAST_RESERVE);
    }

    #[test]
    fn this_host_has_something_of_each() {
        let host = HostResources::read(Path::new("/var/no-such-folder"));
        assert!(host.memory_bytes > 1 << 20 && host.memory_bytes < u64::MAX);
        assert!(host.cpu_millis >= 1000 && host.pids > 100 && host.disk_bytes < u64::MAX);
        let available = MemoryGauge::open().available();
        assert!(available.is_some_and(|bytes| bytes <= host.memory_bytes));
    }
}
