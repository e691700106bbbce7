//! All trees of the host together: which does what, and the groups in them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;
use sandyard_core::Limits;

use super::mounts::{self, Mount};
use super::tree::{Jobs, Tree};
use super::{Cgroup, CgroupError, parent};
use crate::cgroup::Result;

/// Chooses where sandboxes' groups live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Name of the group that holds all sandboxes' groups: one component of `[a-z0-9-]`.
    pub prefix: String,
    /// Below which group that one is made.
    pub location: ParentLocation,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            prefix: "sandyard".to_owned(),
            location: ParentLocation::Highest,
        }
    }
}

/// Says below which group the parent of all sandboxes goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParentLocation {
    /// The highest group we may write to: the same one wherever the launcher was started.
    #[default]
    Highest,
    /// The group this process is in, so that limits put on the launcher hold for all its sandboxes.
    Current,
}

/// What the host's control groups can do for a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Support {
    /// Memory can be limited.
    pub memory: bool,
    /// Processor time can be limited.
    pub cpu: bool,
    /// The number of processes can be limited.
    pub pids: bool,
    /// All processes can be stopped and continued at once.
    pub freeze: bool,
    /// All processes can be killed with no race against new ones.
    pub kill: bool,
    /// Access to device nodes can be limited (v1 only; on v2 the user namespace alone forbids `mknod`).
    pub devices: bool,
    /// Where each of these is done, for people: `memory: v1 /sys/fs/cgroup/memory, …`.
    pub how: String,
}

/// The host's control groups, as far as this process may use them.
///
/// Holds descriptors of host directories: a process that becomes part of a sandbox must close them.
#[derive(Debug)]
pub struct Hierarchy {
    trees: Arc<[Tree]>,
    support: Support,
    /// Whether the parents are known to exist; forgotten when a create finds them gone.
    prepared: AtomicBool,
}

impl Hierarchy {
    /// Finds out what the host has, with the usual names. Leaves nothing behind.
    pub fn detect() -> Self {
        Self::detect_with(&Settings::default())
    }

    /// Finds out what the host has. Trees we cannot use are left out; [`Hierarchy::support`] tells.
    pub fn detect_with(settings: &Settings) -> Self {
        let mounts = mounts::find();
        let mut trees: Vec<Tree> = mounts
            .iter()
            .filter_map(|mount| open_tree(mount, settings))
            .collect();
        // The unified tree first: where both can freeze, its way is the better one.
        trees.sort_by_key(|tree| !tree.is_v2);
        share_jobs(&mut trees);
        trees.retain(|tree| tree.jobs != Jobs::default());
        let support = support(&trees, &mounts);
        Self {
            trees: trees.into(),
            support,
            prepared: AtomicBool::new(false),
        }
    }

    /// A host without control groups: nothing is limited, and groups are names only.
    pub fn none() -> Self {
        Self {
            trees: Arc::new([]),
            support: support(&[], &[]),
            prepared: AtomicBool::new(false),
        }
    }

    /// Tells what can be limited here.
    pub fn support(&self) -> &Support {
        &self.support
    }

    /// Makes the parent groups now, so that no later [`Hierarchy::create`] pays for it. Idempotent.
    pub fn prepare(&self) -> Result<()> {
        for tree in self.trees.iter() {
            parent::prepare(tree)?;
        }
        self.prepared.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Makes a group with these limits, undoing what was made if any step fails.
    ///
    /// A limit the host cannot hold ([`Hierarchy::support`]) is left out: a caller that needs it must check first.
    pub fn create(&self, name: &str, limits: &Limits) -> Result<Cgroup> {
        let group = Cgroup::by_name(Arc::clone(&self.trees), name)?;
        if !self.prepared.load(Ordering::Relaxed) {
            self.prepare()?;
        }
        let made = match group.make() {
            Err(CgroupError::Make { source, .. })
                if source.raw_os_error() == Some(Errno::NOENT.raw_os_error()) =>
            {
                // Another process removed the empty parent since.
                self.prepare()?;
                group.make()
            }
            other => other,
        };
        made?;
        if let Err(error) = group.apply(limits) {
            // The first error is the one to tell; what is left here is swept by name later.
            let _ = group.remove();
            return Err(error);
        }
        Ok(group)
    }

    /// Finds an existing group, if only in one tree: a creator may have died half-way.
    pub fn open(&self, name: &str) -> Result<Cgroup> {
        let group = Cgroup::by_name(Arc::clone(&self.trees), name)?;
        if group.exists() {
            Ok(group)
        } else {
            Err(CgroupError::NotFound {
                name: name.to_owned(),
            })
        }
    }

    /// A group by its name, which may not exist: reading it fails then.
    pub fn by_name(&self, name: &str) -> Result<Cgroup> {
        Cgroup::by_name(Arc::clone(&self.trees), name)
    }

    /// Lists the names of all groups in any of the trees, sorted.
    pub fn list(&self) -> Result<Vec<String>> {
        let mut names = BTreeSet::new();
        for tree in self.trees.iter() {
            names.extend(tree.children(tree.prefix())?);
        }
        Ok(names.into_iter().collect())
    }

    /// Removes the parents if no sandbox is in them. Tells whether all are gone.
    pub fn remove_parent_if_empty(&self) -> Result<bool> {
        self.prepared.store(false, Ordering::Relaxed);
        let mut all = true;
        for tree in self.trees.iter() {
            match tree.remove_dir(tree.prefix()) {
                Ok(()) => {}
                Err(Errno::BUSY | Errno::NOTEMPTY) => all = false,
                Err(errno) => {
                    return Err(CgroupError::Remove {
                        path: tree.display_path(tree.prefix()),
                        source: errno.into(),
                    });
                }
            }
        }
        Ok(all)
    }
}

fn open_tree(mount: &Mount, settings: &Settings) -> Option<Tree> {
    candidates(mount, settings)
        .into_iter()
        .find_map(|base| Tree::open(mount, &base, &settings.prefix).ok())
}

/// Lists the groups to try, best first.
fn candidates(mount: &Mount, settings: &Settings) -> Vec<PathBuf> {
    let mut own_group = mount.own_group.as_path();
    // An earlier start of ours moved this process one down, see `parent`.
    if own_group.file_name() == Some(parent::outer_name(&settings.prefix).as_ref()) {
        own_group = own_group.parent().unwrap_or(Path::new(""));
    }
    // Joining an empty path would leave a slash at the end.
    let below = |path: &Path| match path.as_os_str().is_empty() {
        true => mount.point.clone(),
        false => mount.point.join(path),
    };
    match settings.location {
        ParentLocation::Current => vec![below(own_group)],
        ParentLocation::Highest => {
            let mut bases: Vec<PathBuf> = own_group.ancestors().map(below).collect();
            bases.reverse();
            bases
        }
    }
}

/// Leaves each job to the first tree that can do it.
fn share_jobs(trees: &mut [Tree]) {
    let mut taken = Jobs::default();
    for tree in trees {
        let jobs = &mut tree.jobs;
        for (job, taken) in [
            (&mut jobs.memory, &mut taken.memory),
            (&mut jobs.cpu, &mut taken.cpu),
            (&mut jobs.cpu_time, &mut taken.cpu_time),
            (&mut jobs.pids, &mut taken.pids),
            (&mut jobs.freeze, &mut taken.freeze),
            (&mut jobs.kill, &mut taken.kill),
            (&mut jobs.devices, &mut taken.devices),
        ] {
            *job &= !*taken;
            *taken |= *job;
        }
    }
}

fn support(trees: &[Tree], mounts: &[Mount]) -> Support {
    let location = |job: fn(&Jobs) -> bool| trees.iter().find(|tree| job(&tree.jobs));
    let mut how = Vec::new();
    let mut note = |name: &str, tree: Option<&Tree>| {
        if let Some(tree) = tree {
            let version = if tree.is_v2 { "v2" } else { "v1" };
            how.push(format!("{name}: {version} {}", tree.base_path().display()));
        }
        tree.is_some()
    };
    let mut support = Support {
        memory: note("memory", location(|jobs| jobs.memory)),
        cpu: note("cpu", location(|jobs| jobs.cpu)),
        pids: note("pids", location(|jobs| jobs.pids)),
        freeze: note("freeze", location(|jobs| jobs.freeze)),
        // Freezing first makes killing one by one free of races.
        kill: note(
            "kill",
            location(|jobs| jobs.kill).or(location(|jobs| jobs.freeze)),
        ),
        devices: note("devices", location(|jobs| jobs.devices)),
        how: String::new(),
    };
    support.how = if !how.is_empty() {
        how.join(", ")
    } else if mounts.is_empty() {
        "no cgroup hierarchy is mounted".to_owned()
    } else {
        "no cgroup hierarchy is writable for this process".to_owned()
    };
    support
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate_paths(own_group: &str, location: ParentLocation) -> Vec<PathBuf> {
        let mount = Mount {
            point: "/c".into(),
            v1: None,
            own_group: own_group.into(),
        };
        let prefix = "sandyard".to_owned();
        candidates(&mount, &Settings { prefix, location })
    }

    #[test]
    fn highest_group_is_tried_first() {
        assert_eq!(
            candidate_paths("", ParentLocation::Highest),
            [Path::new("/c")]
        );
        let all = ["/c", "/c/a", "/c/a/b"].map(PathBuf::from);
        assert_eq!(candidate_paths("a/b", ParentLocation::Highest), all);
    }

    #[test]
    fn own_group_is_the_same_after_we_moved_one_down() {
        assert_eq!(
            candidate_paths("a", ParentLocation::Current),
            [Path::new("/c/a")]
        );
        assert_eq!(
            candidate_paths("a/sandyard-outer", ParentLocation::Current),
            [Path::new("/c/a")]
        );
        assert_eq!(
            candidate_paths("", ParentLocation::Current),
            [Path::new("/c")]
        );
    }
}
