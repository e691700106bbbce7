//! The kernel this process runs on.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::mount::MountAttrFlags;
use sandyard_confine::cgroup::{Cgroup, Hierarchy};
use sandyard_core::Limits;

use super::{FirstProcess, IdMap, Kernel};
use crate::error::{EngineError, ErrorKind, Result};
use crate::init;
use crate::sys::clone::{Cloned, clone_into_namespaces, clone_with_owner};
use crate::sys::fds::keep_only;
use crate::sys::loopdev::LoopDevice;
use crate::sys::{OperationExt, SysResult, idmap, mount, process};

/// The namespaces that the first process is cloned into. It makes its network and cgroup namespaces itself, while it waits for the
/// worker anyway.
const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS;

/// The kernel this process runs on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linux;

impl Kernel for Linux {
    fn create_cgroup(&self, cgroups: &Hierarchy, name: &str, limits: &Limits) -> Result<Cgroup> {
        cgroups
            .create(name, limits)
            .map_err(|error| EngineError::failed("creating the cgroup", &error))
    }

    fn kill_cgroup(&self, cgroups: &Hierarchy, name: &str) {
        if let Ok(cgroup) = cgroups.open(name) {
            let _ = cgroup.kill();
            // Processes of a frozen version 1 group do not even die.
            let _ = cgroup.thaw();
        }
    }

    fn remove_cgroup(&self, cgroups: &Hierarchy, name: &str, timeout: Duration) -> Result<()> {
        let Ok(cgroup) = cgroups.open(name) else {
            return Ok(());
        };
        self.kill_cgroup(cgroups, name);
        let removed = cgroup.wait_empty(timeout).and_then(|()| cgroup.remove());
        removed.map_err(|error| EngineError {
            kind: match error.is_busy() {
                true => ErrorKind::Busy,
                false => ErrorKind::Failed,
            },
            ..EngineError::failed("removing the cgroup", &error)
        })
    }

    fn cgroup_names(&self, cgroups: &Hierarchy) -> Result<Vec<String>> {
        cgroups
            .list()
            .map_err(|error| EngineError::failed("listing cgroups", &error))
    }

    fn clone_first_process(&self, first: FirstProcess<'_>) -> Result<Cloned> {
        let cgroup = first
            .cgroup
            .clone_into()
            .map_err(|error| EngineError::failed("opening the cgroup", &error))?;
        let cgroup = cgroup.as_ref().map(AsFd::as_fd);
        let cloned = match first.owner {
            Some(owner) => clone_with_owner(NAMESPACES, cgroup, owner),
            None => clone_into_namespaces(NAMESPACES, cgroup),
        };
        if let Some(child) = cloned.operation("clone", "the first process")? {
            return Ok(child);
        }
        // SAFETY: this is the fresh child; nothing of the worker's is used from here on.
        unsafe { init::run(first.plan, first.worker, first.listener) }
    }

    fn join_cgroup(&self, cgroup: &Cgroup, pid: i32) -> Result<()> {
        cgroup
            .add_cloned(pid)
            .map_err(|error| EngineError::failed("joining the cgroup", &error))
    }

    fn map_ids(&self, pid: i32, map: IdMap) -> SysResult<()> {
        match map {
            IdMap::Range { first, count } => idmap::write_maps(pid, first, count),
            IdMap::Same { count } => idmap::write_same_maps(pid, count),
            IdMap::Single { uid, gid } => idmap::write_single_maps(pid, uid, gid),
        }
    }

    fn user_namespace(&self, pid: i32) -> SysResult<OwnedFd> {
        idmap::user_namespace(pid)
    }

    fn shift_owners(&self, tree: &OwnedFd, user_namespace: &OwnedFd) -> SysResult<()> {
        idmap::shift(tree, user_namespace)
    }

    fn clone_shifted(&self, folder: &Path, user_namespace: &OwnedFd) -> SysResult<OwnedFd> {
        idmap::shifted_read_only(folder, user_namespace)
    }

    fn attach_loop(&self, image: &Path) -> SysResult<LoopDevice> {
        LoopDevice::attach(image)
    }

    fn reopen_loop(&self, number: u32, image: &Path) -> io::Result<Option<LoopDevice>> {
        LoopDevice::reopen(number, image)
    }

    fn mount_ext4(&self, device: &LoopDevice, attributes: MountAttrFlags) -> SysResult<OwnedFd> {
        mount::detached_ext4(&device.path, attributes)
    }

    fn kill(&self, pidfd: &OwnedFd, timeout: Duration) -> io::Result<bool> {
        process::kill_and_wait(pidfd, timeout)
    }

    fn run_in_background(&self, work: &dyn Fn()) {
        if let Ok(None) = clone_into_namespaces(0, None) {
            // A lock ends when every process that has it open ends: this one may outlive its parent.
            // SAFETY: this fork uses no descriptor that was open before, and drops none: it leaves by `_exit`.
            let _ = unsafe { keep_only(Vec::new()) };
            work();
            // SAFETY: ends this fork at once; what is on its stack belongs to the process it was forked from.
            unsafe { libc::_exit(0) }
        }
    }
}
