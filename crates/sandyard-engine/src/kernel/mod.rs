//! The privileged kernel calls of the verbs, behind one trait.
//!
//! [`Linux`] makes them. In tests `FakeKernel` records them and fails chosen ones, so that the steps of every verb and
//! their undos run as an ordinary user. What an ordinary user may do anyway (files, locks, sockets) is not in the trait.

#[cfg(test)]
pub(crate) mod fake;
mod linux;

use std::fmt::Debug;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::mount::MountAttrFlags;
use sandyard_confine::cgroup::{Cgroup, Hierarchy};
use sandyard_core::Limits;

use crate::error::Result;
use crate::init::InitPlan;
use crate::sys::SysResult;
use crate::sys::clone::Cloned;
use crate::sys::loopdev::LoopDevice;

pub(crate) use linux::Linux;

/// The first process of a sandbox, before it is cloned.
pub(crate) struct FirstProcess<'a> {
    pub(crate) plan: InitPlan<'a>,
    pub(crate) cgroup: &'a Cgroup,
    /// The user that its user namespace belongs to; the worker's own if none is given.
    pub(crate) owner: Option<u32>,
    /// Its end of the handshake with the worker.
    pub(crate) worker: OwnedFd,
    /// Where the agent answers on the host.
    pub(crate) listener: OwnedFd,
}

/// Which host ids the ids of a user namespace stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdMap {
    /// `count` ids from 0 inside are those from `first` outside.
    Range { first: u32, count: u32 },
    /// The `count` ids of the launcher's own user namespace.
    Same { count: u32 },
    /// Root inside is this user and group, and there is no other id.
    Single { uid: u32, gid: u32 },
}

/// The privileged calls.
///
/// Each either does all of what it says or fails and leaves nothing. What a call returns as a descriptor is released when that is
/// closed.
pub(crate) trait Kernel: Debug {
    /// Creates the cgroup `name` with `limits`.
    fn create_cgroup(&self, cgroups: &Hierarchy, name: &str, limits: &Limits) -> Result<Cgroup>;

    /// Kills every process of the cgroup `name`, frozen ones too, as far as possible. Does not wait.
    fn kill_cgroup(&self, cgroups: &Hierarchy, name: &str);

    /// Kills every process of the cgroup `name` and removes it. A missing group counts as removed.
    ///
    /// # Errors
    /// `Busy` when processes take longer than `timeout` to end.
    fn remove_cgroup(&self, cgroups: &Hierarchy, name: &str, timeout: Duration) -> Result<()>;

    /// The names of all cgroups of sandboxes.
    fn cgroup_names(&self, cgroups: &Hierarchy) -> Result<Vec<String>>;

    /// Clones the first process into its namespaces and its cgroup. In the child this never returns.
    fn clone_first_process(&self, first: FirstProcess<'_>) -> Result<Cloned>;

    /// Moves a cloned first process into the cgroup hierarchies that cloning cannot reach (version 1).
    fn join_cgroup(&self, cgroup: &Cgroup, pid: i32) -> Result<()>;

    /// Sets the ids of the user namespace of process `pid`.
    fn map_ids(&self, pid: i32, map: IdMap) -> SysResult<()>;

    /// Opens the user namespace of process `pid`.
    fn user_namespace(&self, pid: i32) -> SysResult<OwnedFd>;

    /// Shifts the owners of a detached mount into a user namespace.
    fn shift_owners(&self, tree: &OwnedFd, user_namespace: &OwnedFd) -> SysResult<()>;

    /// Mounts a folder of the host read-only and detached, its owners shifted into a user namespace.
    fn clone_shifted(&self, folder: &Path, user_namespace: &OwnedFd) -> SysResult<OwnedFd>;

    /// Attaches a disk image to a free loop device.
    fn attach_loop(&self, image: &Path) -> SysResult<LoopDevice>;

    /// Opens loop device `number` if it is attached to `image`.
    fn reopen_loop(&self, number: u32, image: &Path) -> io::Result<Option<LoopDevice>>;

    /// Mounts the ext4 on a loop device, detached.
    fn mount_ext4(&self, device: &LoopDevice, attributes: MountAttrFlags) -> SysResult<OwnedFd>;

    /// Kills a process and waits until it has ended. `false`: it did not within `timeout`.
    fn kill(&self, pidfd: &OwnedFd, timeout: Duration) -> io::Result<bool>;

    /// Runs `work` in a process of its own that nobody waits for.
    fn run_in_background(&self, work: &dyn Fn());
}
