//! Writes limits into control files.

use sandyard_core::Limits;

use super::tree::Tree;
use crate::cgroup::Result;

/// Microseconds over which processor time is shared out: the kernel's default, so v1 need not write it.
const PERIOD_US: u64 = 100_000;
/// The kernel refuses quotas below this.
const LEAST_QUOTA_US: u64 = 1_000;
/// Share of the memory limit that may wait in TCP sockets, where it is counted apart. The host has one bound (`tcp_mem`, about
/// a tenth of its memory) for all sandboxes together.
const SOCKET_SHARE: u64 = 16;
const MAX_SOCKET_BYTES: u64 = 256 << 20;

/// Applies what this tree is responsible for.
pub(super) fn apply(tree: &Tree, group: &str, limits: &Limits) -> Result<()> {
    let file = |name: &str| format!("{group}/{name}");
    let quota = (u64::from(limits.cpu_millis) * PERIOD_US / 1000).max(LEAST_QUOTA_US);
    if tree.jobs.memory {
        memory(tree, group, limits.memory_bytes)?;
    }
    if tree.jobs.cpu && tree.is_v2 {
        tree.write(&file("cpu.max"), &format!("{quota} {PERIOD_US}"))?;
    } else if tree.jobs.cpu {
        tree.write(&file("cpu.cfs_quota_us"), &quota.to_string())?;
    }
    if tree.jobs.pids {
        tree.write(&file("pids.max"), &limits.pids.to_string())?;
    }
    Ok(())
}

/// Limits memory and forbids swap, so that the limit is what it says and a hog cannot wear out the host's disk.
fn memory(tree: &Tree, group: &str, bytes: u64) -> Result<()> {
    let file = |name: &str| format!("{group}/{name}");
    let sockets = (bytes / SOCKET_SHARE).min(MAX_SOCKET_BYTES).to_string();
    let bytes = bytes.to_string();
    if tree.is_v2 {
        tree.write(&file("memory.max"), &bytes)?;
        // When one process takes too much only that one dies, not the sandbox's agent with it.
        tree.write_if_there(&file("memory.oom.group"), "0")?;
        return tree.write_if_there(&file("memory.swap.max"), "0");
    }
    let (limit, with_swap) = (
        file("memory.limit_in_bytes"),
        file("memory.memsw.limit_in_bytes"),
    );
    // Version 1 counts what waits in sockets apart from everything else.
    tree.write_if_there(&file("memory.kmem.tcp.limit_in_bytes"), &sockets)?;
    // The second may never be below the first, so the order depends on whether the limit goes up or down.
    if tree.write_at(&limit, &bytes).is_err() {
        tree.write_if_there(&with_swap, &bytes)?;
        tree.write(&limit, &bytes)?;
    }
    if tree.exists(&with_swap) {
        tree.write(&with_swap, &bytes)
    } else {
        tree.write_if_there(&file("memory.swappiness"), "0")
    }
}
