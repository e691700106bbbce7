//! The groups this process is in itself, for what they leave of the host.

use std::fs;
use std::path::PathBuf;

use super::mounts::{self, Mount};
use super::stats::{field, number};

/// This process's own group in every tree, with those above it.
#[derive(Clone, Debug)]
pub struct OwnGroups {
    groups: Vec<Group>,
}

#[derive(Clone, Debug)]
struct Group {
    path: PathBuf,
    /// Controllers of a v1 tree; `None` for v2.
    v1: Option<Vec<String>>,
}

impl Group {
    fn has(&self, controller: &str) -> bool {
        let is_it = |name: &String| name == controller;
        self.v1.as_ref().is_none_or(|names| names.iter().any(is_it))
    }

    /// Reads a number; words like `max` are none.
    fn read(&self, v1: &str, v2: &str) -> Option<u64> {
        let file = if self.v1.is_some() { v1 } else { v2 };
        number(&fs::read_to_string(self.path.join(file)).ok()?)
    }

    fn memory_limit(&self) -> Option<u64> {
        let limit = self.read("memory.limit_in_bytes", "memory.max")?;
        // Version 1 writes no limit as the largest number of whole pages.
        (self.has("memory") && limit < 1 << 60).then_some(limit)
    }

    fn available_memory(&self) -> Option<u64> {
        let used = self.read("memory.usage_in_bytes", "memory.current")?;
        let stat = fs::read_to_string(self.path.join("memory.stat")).unwrap_or_default();
        let free = self.memory_limit()?.saturating_sub(used);
        Some(free.saturating_add(reclaimable(&stat, self.v1.is_some())))
    }
}

/// Caches that would give way. Files in memory are counted among them and would not.
fn reclaimable(stat: &str, is_v1: bool) -> u64 {
    let (cache, shared) = match is_v1 {
        true => ("total_cache", "total_shmem"),
        false => ("file", "shmem"),
    };
    let bytes = |name| field(stat, name).unwrap_or(0);
    bytes(cache).saturating_sub(bytes(shared))
}

impl OwnGroups {
    /// Finds them.
    pub fn find() -> Self {
        let above = |mount: &Mount| {
            let paths: Vec<PathBuf> = mount
                .own_group
                .ancestors()
                .map(|part| mount.point.join(part))
                .collect();
            let v1 = mount.v1.clone();
            paths.into_iter().map(move |path| Group {
                path,
                v1: v1.clone(),
            })
        };
        let groups = mounts::find().iter().flat_map(above).collect();
        Self { groups }
    }

    /// Leaves only those with a memory limit.
    pub(crate) fn keep_limited(&mut self) {
        self.groups.retain(|group| group.memory_limit().is_some());
    }

    /// The smallest number in a file of that name.
    pub(crate) fn least(&self, controller: &str, v1: &str, v2: &str) -> Option<u64> {
        let with = self.groups.iter().filter(|group| group.has(controller));
        with.filter_map(|group| group.read(v1, v2)).min()
    }

    /// The smallest memory limit.
    pub(crate) fn memory_limit(&self) -> Option<u64> {
        self.groups.iter().filter_map(Group::memory_limit).min()
    }

    /// What is left of the tightest memory limit, with caches that would give way.
    pub(crate) fn available_memory(&self) -> Option<u64> {
        self.groups.iter().filter_map(Group::available_memory).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_memory_are_not_reclaimable() {
        assert_eq!(reclaimable("anon 5\nfile 100\nshmem 30\n", false), 70);
        let v1 = "cache 1\nshmem 1\ntotal_cache 100\ntotal_shmem 30\n";
        assert_eq!(reclaimable(v1, true), 70);
        assert_eq!(reclaimable("total_cache 100\n", true), 100, "older kernels");
    }
}
