//! What the first process drops before anything of the user's runs.

use rustix::process::{Resource, Rlimit};
use rustix::thread::UnshareFlags;
use sandyard_confine::rlimits::Accounting;
use sandyard_confine::seccomp::Filter;
use sandyard_confine::{caps, rlimits};

use crate::error::{EngineError, Result};
use crate::sys::{OperationExt, fds};

/// Drops, in this order: the host's cgroup view, resource limits, system calls, capabilities.
pub(super) fn confine(
    filter: &Filter,
    accounting: Accounting,
    max_processes: Option<u32>,
) -> Result<()> {
    // Only now that it is in the sandbox's own cgroup: the namespace shows what is below the group it was made in.
    // SAFETY: a cgroup namespace changes how paths are shown; no descriptor or memory is affected.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWCGROUP) }
        .operation("leave", "the host's cgroup namespace")?;
    fds::silence_standard_streams().operation("silence", "standard streams")?;
    rlimits::apply(accounting)
        .map_err(|error| EngineError::failed("setting resource limits", &error))?;
    if let Some(count) = max_processes {
        let limit = Rlimit {
            current: Some(count.into()),
            maximum: Some(count.into()),
        };
        rustix::process::setrlimit(Resource::Nproc, limit).operation("limit", "processes")?;
    }
    // Before the capabilities: without no_new_privs (which would break sudo) a filter takes CAP_SYS_ADMIN to install.
    filter
        .install()
        .map_err(|error| EngineError::failed("installing the system call filter", &error))?;
    caps::confine().map_err(|error| EngineError::failed("dropping capabilities", &error))?;
    Ok(())
}
