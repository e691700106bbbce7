//! Reads what a group uses at the moment, as cheaply as it can be had: somebody does it for every group every few seconds.

use super::stats::{field, number};
use super::tree::Tree;
use crate::cgroup::Result;

/// What a group uses; a figure the host does not count is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Processor time used so far, in microseconds.
    pub cpu_usage_us: u64,
    /// Memory in use, page cache included.
    pub memory_bytes: u64,
    /// Page cache in it.
    pub cache_bytes: u64,
}

/// Reads one or two small files; the large one only when something has happened since the sample before.
pub(super) fn take(trees: &[Tree], name: &str, before: Option<&Sample>) -> Result<Sample> {
    let mut sample = Sample::default();
    let figure = |tree: &Tree, v1: &str, v2: &str| -> Result<String> {
        let file = if tree.is_v2 { v2 } else { v1 };
        tree.read(&format!("{}/{file}", tree.group(name)))
    };
    if let Some(tree) = trees.iter().find(|tree| tree.jobs.cpu_time) {
        let text = figure(tree, "cpuacct.usage", "cpu.stat")?;
        sample.cpu_usage_us = match tree.is_v2 {
            true => field(&text, "usage_usec"),
            false => number(&text).map(|nanoseconds| nanoseconds / 1000),
        }
        .unwrap_or(0);
    }
    if let Some(tree) = trees.iter().find(|tree| tree.jobs.memory) {
        let text = figure(tree, "memory.usage_in_bytes", "memory.current")?;
        sample.memory_bytes = number(&text).unwrap_or(0);
        let unchanged = before.filter(|before| {
            (before.cpu_usage_us, before.memory_bytes) == (sample.cpu_usage_us, sample.memory_bytes)
        });
        sample.cache_bytes = match unchanged {
            Some(before) => before.cache_bytes,
            None => {
                let text = figure(tree, "memory.stat", "memory.stat")?;
                let cache = if tree.is_v2 { "file" } else { "total_cache" };
                field(&text, cache).unwrap_or(0)
            }
        };
    }
    Ok(sample)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::mounts::Mount;
    use super::*;

    /// A tree of plain files that looks like one of the kernel's.
    fn tree(base: &Path, v1: Option<Vec<String>>, files: &[(&str, &str)]) -> Tree {
        std::fs::create_dir_all(base.join("yard/a")).unwrap();
        std::fs::write(base.join("cgroup.procs"), "").unwrap();
        for (name, text) in files {
            std::fs::write(base.join("yard/a").join(name), text).unwrap();
        }
        let mount = Mount {
            point: base.to_owned(),
            v1,
            own_group: "".into(),
        };
        let mut tree = Tree::open(&mount, base, "yard").unwrap();
        tree.jobs.cpu_time = true;
        tree.jobs.memory = true;
        tree
    }

    #[test]
    fn both_generations_are_read() {
        let expected = Sample {
            cpu_usage_us: 1500,
            memory_bytes: 9000,
            cache_bytes: 4000,
        };
        let v1 = tempfile::tempdir().unwrap();
        let files = [
            ("cpuacct.usage", "1500999\n"),
            ("memory.usage_in_bytes", "9000\n"),
            ("memory.stat", "cache 1\ntotal_cache 4000\n"),
        ];
        let controllers = vec!["memory".to_owned(), "cpuacct".to_owned()];
        let trees = [tree(v1.path(), Some(controllers), &files)];
        assert_eq!(take(&trees, "a", None).unwrap(), expected);
        let v2 = tempfile::tempdir().unwrap();
        let files = [
            ("cpu.stat", "usage_usec 1500\nuser_usec 1\n"),
            ("memory.current", "9000\n"),
            ("memory.stat", "anon 5000\nfile 4000\n"),
        ];
        let trees = [tree(v2.path(), None, &files)];
        assert_eq!(take(&trees, "a", None).unwrap(), expected);
    }

    #[test]
    fn the_large_file_is_read_only_after_something_happened() {
        let base = tempfile::tempdir().unwrap();
        let files = [
            ("cpu.stat", "usage_usec 1500\n"),
            ("memory.current", "9000\n"),
        ];
        let trees = [tree(base.path(), None, &files)];
        let before = Sample {
            cpu_usage_us: 1500,
            memory_bytes: 9000,
            cache_bytes: 4000,
        };
        assert_eq!(take(&trees, "a", Some(&before)).unwrap(), before);
        let older = Sample {
            cpu_usage_us: 1499,
            ..before
        };
        take(&trees, "a", Some(&older)).expect_err("there is no such file to read");
    }

    #[test]
    fn a_group_that_is_gone_is_no_sample() {
        let base = tempfile::tempdir().unwrap();
        let trees = [tree(base.path(), None, &[])];
        take(&trees, "b", None).expect_err("no such group");
    }
}
