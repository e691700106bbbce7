//! Reads from /proc what processes and the whole host use.

use std::collections::{BTreeSet, HashMap};
use std::fs;

use anyhow::{Context as _, Result};

/// Adds up the proportional set size, in bytes, of `roots` and everything they started.
///
/// PSS counts a page shared by n processes as 1/n in each: the honest share of one sandbox among a thousand.
pub(crate) fn pss_of_trees(roots: &[u32]) -> Result<u64> {
    let pids = trees(roots)?;
    // A process may end between the listing and the reading; it uses nothing then.
    Ok(pids
        .iter()
        .filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok())
        .map(|text| field(&text, "Pss:"))
        .sum())
}

/// Adds up the proportional set size, in bytes, of all processes with this name.
pub(crate) fn pss_of_called(name: &str) -> Result<u64> {
    let is_called = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|found| found.trim() == name)
    };
    let rollups = processes()?.into_iter().filter(is_called);
    let rollups =
        rollups.filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok());
    Ok(rollups.map(|text| field(&text, "Pss:")).sum())
}

/// Adds up the resident memory, in bytes, of these processes alone.
pub(crate) fn rss(pids: &[u32]) -> Result<u64> {
    pids.iter()
        .map(|pid| {
            let text = fs::read_to_string(format!("/proc/{pid}/status"))
                .with_context(|| format!("failed to read what {pid} uses"))?;
            Ok(field(&text, "VmRSS:"))
        })
        .sum()
}

/// Returns the children of `pid` whose program has this name.
pub(crate) fn children_called(pid: u32, name: &str) -> Result<Vec<u32>> {
    let is_called = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|found| found.trim() == name)
    };
    Ok(processes()?
        .into_iter()
        .filter(|child| parent_of(*child).is_ok_and(|parent| parent == pid))
        .filter(is_called)
        .collect())
}

/// Returns the processes whose command line has both words, by their id.
pub(crate) fn started_as(first: &str, second: &str) -> Result<Vec<u32>> {
    let has_both = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let has = |word: &str| {
            line.split(|byte| *byte == 0)
                .any(|one| one == word.as_bytes())
        };
        has(first) && has(second)
    };
    Ok(processes()?.into_iter().filter(has_both).collect())
}

/// Returns the parent of `pid`.
pub(crate) fn parent_of(pid: u32) -> Result<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))
        .with_context(|| format!("failed to read parent of {pid}"))?;
    parent_in(&stat).with_context(|| format!("/proc/{pid}/stat names no parent"))
}

/// Returns the memory that new work could use, in bytes: falls by kernel memory too, which PSS does not show.
pub(crate) fn available_bytes() -> Result<u64> {
    Ok(field(
        &fs::read_to_string("/proc/meminfo").context("failed to read /proc/meminfo")?,
        "MemAvailable:",
    ))
}

/// Returns the memory of the host, in bytes.
pub(crate) fn total_bytes() -> Result<u64> {
    Ok(field(
        &fs::read_to_string("/proc/meminfo").context("failed to read /proc/meminfo")?,
        "MemTotal:",
    ))
}

fn processes() -> Result<Vec<u32>> {
    Ok(fs::read_dir("/proc")
        .context("failed to list /proc")?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect())
}

fn trees(roots: &[u32]) -> Result<BTreeSet<u32>> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for pid in processes()? {
        if let Ok(parent) = parent_of(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = BTreeSet::new();
    let mut open = roots.to_vec();
    while let Some(pid) = open.pop() {
        if found.insert(pid) {
            open.extend(children.get(&pid).into_iter().flatten());
        }
    }
    Ok(found)
}

/// The second field may hold spaces and brackets, so count from the last bracket: state, then parent.
fn parent_in(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kib: Option<u64> = line
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_is_found_behind_an_odd_program_name() {
        assert_eq!(parent_in("12 (a) b (c)) S 7 12 12 0"), Some(7));
    }

    #[test]
    fn own_tree_uses_memory() {
        assert!(pss_of_trees(&[std::process::id()]).unwrap() > 4096);
    }

    #[test]
    fn own_process_is_resident() {
        assert!(rss(&[std::process::id()]).unwrap() > 4096);
    }

    #[test]
    fn processes_are_found_by_their_whole_words() {
        let own = std::fs::read("/proc/self/cmdline").unwrap();
        let word = String::from_utf8_lossy(own.split(|byte| *byte == 0).next().unwrap());
        let found = started_as(&word, &word).unwrap();
        assert!(found.contains(&std::process::id()));
        assert_eq!(
            started_as(&word, "no such word").unwrap(),
            Vec::<u32>::new()
        );
    }

    #[test]
    fn kibibytes_become_bytes() {
        assert_eq!(
            field("Rss: 8 kB\nPss:   3 kB\nPss_Dirty: 1 kB\n", "Pss:"),
            3072
        );
    }
}
