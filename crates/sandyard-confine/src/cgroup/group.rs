//! One sandbox's group, over all trees of the host.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use sandyard_core::Limits;

use super::sample::{self, Sample};
use super::stats::{self, Stats};
use super::tree::{Jobs, Tree};
use super::{CgroupError, freezer, limits};
use crate::cgroup::Result;

/// How long processes may take to stand still. Only a process deep in the kernel (a hung disk), or one on a host that is very
/// busy, takes that long.
const FREEZE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a group may stay busy after its last process has died.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(10);
/// How often to look for processes that were missed where there is neither kill nor freeze.
const KILL_ATTEMPTS: u32 = 100;
/// Longest name: ids are shorter.
const MAX_NAME: usize = 64;

/// The group that holds one sandbox's processes.
///
/// Only a name and shared descriptors: cloning is cheap, dropping changes nothing on the host.
#[derive(Clone, Debug)]
pub struct Cgroup {
    trees: Arc<[Tree]>,
    name: String,
}

impl Cgroup {
    pub(super) fn by_name(trees: Arc<[Tree]>, name: &str) -> Result<Self> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(plain) {
            let name = name.to_owned();
            return Err(CgroupError::Name { name });
        }
        let name = name.to_owned();
        Ok(Self { trees, name })
    }

    /// Makes the directories, all or none.
    pub(super) fn make(&self) -> Result<()> {
        for (index, tree) in self.trees.iter().enumerate() {
            if let Err(error) = tree.make(&tree.group(&self.name)) {
                for made in &self.trees[..index] {
                    // Nothing can be in them yet, and the first error is the one to tell.
                    let _ = made.remove_dir(&made.group(&self.name));
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Gives the group's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Tells whether the group is there, if only in one tree.
    pub fn exists(&self) -> bool {
        self.trees
            .iter()
            .any(|tree| tree.exists(&tree.group(&self.name)))
    }

    /// Moves a process into the group; 0 is the caller.
    ///
    /// In the unified tree this costs half a millisecond: to start a process use [`Cgroup::clone_into`] where it works.
    pub fn add(&self, pid: libc::pid_t) -> Result<()> {
        self.trees
            .iter()
            .try_for_each(|tree| self.add_in(tree, pid))
    }

    /// Moves a process that was cloned with [`Cgroup::clone_into`] into the trees which that did not reach.
    pub fn add_cloned(&self, pid: libc::pid_t) -> Result<()> {
        self.trees
            .iter()
            .filter(|tree| !tree.is_v2)
            .try_for_each(|tree| self.add_in(tree, pid))
    }

    fn add_in(&self, tree: &Tree, pid: libc::pid_t) -> Result<()> {
        tree.write(&self.file(tree, "cgroup.procs"), &pid.to_string())
    }

    /// Opens the unified group for `clone3` with `CLONE_INTO_CGROUP`; `None` where there is no unified tree.
    pub fn clone_into(&self) -> Result<Option<OwnedFd>> {
        let Some(tree) = self.trees.iter().find(|tree| tree.is_v2) else {
            return Ok(None);
        };
        let group = tree.group(&self.name);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::openat(tree.base(), &*group, flags, Mode::empty()) {
            Ok(dir) => Ok(Some(dir)),
            Err(errno) => Err(CgroupError::Read {
                path: tree.display_path(&group),
                source: errno.into(),
            }),
        }
    }

    /// Sets limits, on a group that may already hold processes.
    pub fn apply(&self, limits: &Limits) -> Result<()> {
        self.trees
            .iter()
            .try_for_each(|tree| limits::apply(tree, &tree.group(&self.name), limits))
    }

    /// Stops every process and returns when all stand still. On failure they all continue.
    pub fn freeze(&self) -> Result<()> {
        let tree = self.tree_for(|jobs| jobs.freeze, "freeze")?;
        let group = tree.group(&self.name);
        freezer::request(tree, &group, true)?;
        match freezer::wait_frozen(tree, &group, FREEZE_TIMEOUT) {
            Ok(true) => Ok(()),
            failed => {
                // Half a sandbox standing still helps nobody; the first error is the one to tell.
                let _ = freezer::request(tree, &group, false);
                failed?;
                Err(CgroupError::NotFrozen {
                    name: self.name.clone(),
                    waited_ms: FREEZE_TIMEOUT.as_millis() as u64,
                })
            }
        }
    }

    /// Lets every process continue. They need not have been frozen.
    pub fn thaw(&self) -> Result<()> {
        let tree = self.tree_for(|jobs| jobs.freeze, "thaw")?;
        freezer::request(tree, &tree.group(&self.name), false)
    }

    /// Tells whether the processes were asked to stand still.
    pub fn is_frozen(&self) -> Result<bool> {
        let tree = self.tree_for(|jobs| jobs.freeze, "freeze")?;
        match tree.is_v2 {
            true => Ok(tree.read(&self.file(tree, "cgroup.freeze"))?.trim() == "1"),
            false => Ok(tree.read(&self.file(tree, "freezer.state"))?.trim() != "THAWED"),
        }
    }

    /// Sends SIGKILL to every process, frozen ones too, leaving no new one behind. See [`Cgroup::wait_empty`].
    pub fn kill(&self) -> Result<()> {
        if let Some(tree) = self.trees.iter().find(|tree| tree.jobs.kill) {
            return tree.write(&self.file(tree, "cgroup.kill"), "1");
        }
        let freezer = self.trees.iter().find(|tree| tree.jobs.freeze);
        if let Some(tree) = freezer {
            let group = tree.group(&self.name);
            freezer::request(tree, &group, true)?;
            freezer::wait_frozen(tree, &group, FREEZE_TIMEOUT)?;
        }
        // Frozen processes cannot fork, so one round gets all; without a freezer, repeat until none is left.
        let attempts = if freezer.is_some() { 1 } else { KILL_ATTEMPTS };
        let killed = self.kill_each(attempts);
        if let Some(tree) = freezer {
            freezer::request(tree, &tree.group(&self.name), false)?;
        }
        killed
    }

    fn kill_each(&self, attempts: u32) -> Result<()> {
        for _ in 0..attempts {
            let pids = self.pids()?;
            if pids.is_empty() {
                break;
            }
            for pid in pids.into_iter().filter_map(rustix::process::Pid::from_raw) {
                // It may have died meanwhile.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
        Ok(())
    }

    /// Lists the processes in the group, as this process's pid namespace numbers them.
    pub fn pids(&self) -> Result<Vec<libc::pid_t>> {
        let tree = self.tree_for(|_| true, "list processes")?;
        match tree.read(&self.file(tree, "cgroup.procs")) {
            Ok(text) => Ok(text.lines().filter_map(|line| line.parse().ok()).collect()),
            // Removed from this tree already, and only empty ones can be.
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Tells whether no process is in the group.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.pids()?.is_empty())
    }

    /// Waits until no process is left in the group.
    pub fn wait_empty(&self, timeout: Duration) -> Result<()> {
        let tree = self.tree_for(|_| true, "list processes")?;
        let empty = match tree.is_v2 {
            true => {
                match freezer::wait_event(tree, &tree.group(&self.name), "populated 0", timeout) {
                    // Removed from this tree already, and only empty ones can be.
                    Err(error) if error.is_not_found() => true,
                    other => other?,
                }
            }
            false => freezer::poll(timeout, || self.is_empty())?,
        };
        match empty {
            true => Ok(()),
            false => Err(CgroupError::NotDead {
                name: self.name.clone(),
                waited_ms: timeout.as_millis() as u64,
            }),
        }
    }

    /// Reads what the group uses and has used.
    pub fn stats(&self) -> Result<Stats> {
        let mut stats = Stats::default();
        for tree in self.trees.iter() {
            stats::collect(tree, &tree.group(&self.name), &mut stats)?;
        }
        Ok(stats)
    }

    /// Reads what the group uses now, with little work; `before` is the sample before this one. Fails when it is gone.
    pub fn sample(&self, before: Option<&Sample>) -> Result<Sample> {
        sample::take(&self.trees, &self.name, before)
    }

    /// Removes the group from all trees. Succeeds when it is already gone; fails while processes are in it.
    pub fn remove(&self) -> Result<()> {
        let deadline = Instant::now() + REMOVE_TIMEOUT;
        let mut result = Ok(());
        for tree in self.trees.iter() {
            // The others go even if one stays.
            let removed = remove_with_children(tree, &tree.group(&self.name), deadline);
            result = result.and(removed);
        }
        result
    }

    fn file(&self, tree: &Tree, name: &str) -> String {
        format!("{}/{}/{name}", tree.prefix(), self.name)
    }

    fn tree_for(&self, job: fn(&Jobs) -> bool, operation: &'static str) -> Result<&Tree> {
        let mut trees = self.trees.iter();
        trees
            .find(|tree| job(&tree.jobs))
            .ok_or(CgroupError::Unsupported { operation })
    }
}

/// Removes a group, waiting a little while its last processes leave.
fn remove_with_children(tree: &Tree, group: &str, deadline: Instant) -> Result<()> {
    let timeout = deadline.saturating_duration_since(Instant::now());
    let removed = freezer::poll(timeout, || match tree.remove_dir(group) {
        Ok(()) => Ok(true),
        Err(Errno::BUSY | Errno::NOTEMPTY) => {
            // Nothing inside may make groups of its own, but a host that delegates them is imaginable.
            for child in tree.children(group)? {
                remove_with_children(tree, &format!("{group}/{child}"), deadline)?;
            }
            Ok(false)
        }
        Err(errno) => Err(remove_error(tree, group, errno)),
    })?;
    match removed {
        true => Ok(()),
        false => Err(remove_error(tree, group, Errno::BUSY)),
    }
}

fn remove_error(tree: &Tree, group: &str, errno: Errno) -> CgroupError {
    CgroupError::Remove {
        path: tree.display_path(group),
        source: errno.into(),
    }
}
