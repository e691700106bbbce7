//! The parent of all sandboxes' groups: made once, set up so that children inherit.

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::tree::{Tree, contains_word};
use super::{CgroupError, devices};
use crate::cgroup::Result;

/// How often to empty a base whose processes keep forking before giving up.
const EVACUATIONS: u32 = 10;

/// Makes and sets up the parent in one tree. Idempotent, and safe against another process doing the same.
pub(super) fn prepare(tree: &Tree) -> Result<()> {
    let _lock = lock(tree)?;
    match tree.make(tree.prefix()) {
        Err(CgroupError::Make { source, .. })
            if source.raw_os_error() == Some(Errno::EXIST.raw_os_error()) => {}
        other => other?,
    }
    if tree.is_v2 {
        return enable_controllers(tree);
    }
    if tree.jobs.memory {
        count_hierarchically(tree)?;
    }
    if tree.jobs.devices {
        devices::restrict(tree)?;
    }
    Ok(())
}

/// Locks the base directory; the lock goes with the descriptor.
fn lock(tree: &Tree) -> Result<std::os::fd::OwnedFd> {
    // A descriptor of its own, since locks belong to the open file, not to the process.
    tree.open_file(".")
        .and_then(|dir| {
            rustix::io::retry_on_intr(|| rustix::fs::flock(&dir, FlockOperation::LockExclusive))?;
            Ok(dir)
        })
        .map_err(|errno| CgroupError::Read {
            path: tree.base_path().to_owned(),
            source: errno.into(),
        })
}

/// Before 5.11 a v1 memory group counted its children only when told to.
fn count_hierarchically(tree: &Tree) -> Result<()> {
    let file = format!("{}/memory.use_hierarchy", tree.prefix());
    match tree.read_at(&file) {
        Ok(text) if text.trim() == "0" => tree.write(&file, "1"),
        _ => Ok(()),
    }
}

/// Enables our controllers for the base's children, then for the parent's.
fn enable_controllers(tree: &Tree) -> Result<()> {
    let controllers = [
        ("memory", tree.jobs.memory),
        ("cpu", tree.jobs.cpu),
        ("pids", tree.jobs.pids),
    ];
    for (name, _) in controllers
        .into_iter()
        .filter(|(_, controllers)| *controllers)
    {
        enable(tree, "cgroup.subtree_control", name)?;
        enable(
            tree,
            &format!("{}/cgroup.subtree_control", tree.prefix()),
            name,
        )?;
    }
    share_disk(tree);
    Ok(())
}

/// Has the kernel share out disk I/O between sandboxes, each with the same weight, where it can: a scheduler or cost model with
/// weights must be in use. No sandbox depends on it, so a refusal is not told.
fn share_disk(tree: &Tree) {
    const CONTROLLER: &str = "io";
    let available = tree.read_at("cgroup.controllers").unwrap_or_default();
    if contains_word(&available, CONTROLLER) {
        let parent = format!("{}/cgroup.subtree_control", tree.prefix());
        let _ = enable(tree, "cgroup.subtree_control", CONTROLLER)
            .and_then(|()| enable(tree, &parent, CONTROLLER));
    }
}

fn enable(tree: &Tree, file: &str, controller: &str) -> Result<()> {
    if contains_word(&tree.read(file)?, controller) {
        return Ok(());
    }
    let value = format!("+{controller}");
    for _ in 0..EVACUATIONS {
        match tree.write_at(file, &value) {
            // Except for the real root, a group with processes of its own cannot hand controllers to children.
            Err(Errno::BUSY) if file == "cgroup.subtree_control" => evacuate(tree)?,
            _ => break,
        }
    }
    match contains_word(&tree.read(file)?, controller) {
        true => Ok(()),
        false => tree.write(file, &value),
    }
}

/// Names the group that takes the processes found in the base: usually our own, or all of an outer container's.
pub(super) fn outer_name(prefix: &str) -> String {
    format!("{prefix}-outer")
}

/// Moves all processes of the base itself into a leaf of their own.
fn evacuate(tree: &Tree) -> Result<()> {
    let outer = outer_name(tree.prefix());
    if !tree.exists(&outer) {
        tree.make(&outer)?;
    }
    let target = format!("{outer}/cgroup.procs");
    for pid in tree.read("cgroup.procs")?.lines() {
        match tree.write_at(&target, pid) {
            // Gone since, or a kernel thread which the rule does not count.
            Ok(()) | Err(Errno::SRCH | Errno::INVAL) => {}
            Err(_) => tree.write(&target, pid)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::mounts::Mount;
    use super::*;

    /// A tree of plain files that looks like one of the kernel's.
    fn prepared(controllers: &str) -> String {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(base.path().join("yard")).unwrap();
        for (name, text) in [
            ("cgroup.procs", ""),
            ("cgroup.controllers", controllers),
            ("cgroup.subtree_control", "io "),
            ("yard/cgroup.subtree_control", ""),
        ] {
            std::fs::write(base.path().join(name), text).unwrap();
        }
        let mount = Mount {
            point: base.path().to_owned(),
            v1: None,
            own_group: "".into(),
        };
        let mut tree = Tree::open(&mount, base.path(), "yard").unwrap();
        tree.jobs = Default::default();
        prepare(&tree).expect("prepare");
        std::fs::read_to_string(base.path().join("yard/cgroup.subtree_control")).unwrap()
    }

    #[test]
    fn disk_is_shared_out_where_there_is_a_controller_for_it() {
        assert_eq!(prepared("cpu io memory"), "+io");
        assert_eq!(prepared("cpu memory"), "");
    }
}
