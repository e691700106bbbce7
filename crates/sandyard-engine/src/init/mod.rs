//! The first process of a sandbox, from its start in new namespaces until it becomes the agent.
//!
//! It is root of its own user namespace and of nothing else. It builds its file system from the mounts that the worker sends, drops
//! what it no longer needs, waits until the worker has noted it, and becomes the agent without an `exec`. If the worker dies before
//! that, it ends too: a sandbox that is not on record does not run.

mod confine;
mod device;
pub(crate) mod egress;
mod identity;
mod kernel_fs;
mod root;
mod volumes;

pub(crate) use identity::{possible_files, resolver_settings};

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use sandyard_agent::{AgentConfig, EgressListeners};
use sandyard_confine::rlimits::Accounting;
use sandyard_confine::seccomp::Filter;
use sandyard_template::Template;
use serde::{Deserialize, Serialize};

use crate::error::{EngineError, ErrorKind, Result};
use crate::mode::Mode;
use crate::steps::{Fault, FaultProcess, Faults};
use crate::sys::title::Title;
use crate::sys::{fds, socket};

/// The worker's message that the first process may run.
pub(crate) const GO: &[u8] = b"go";

/// All that the first process needs to know. It inherits this by the clone.
pub(crate) struct InitPlan<'a> {
    pub(crate) mode: Mode,
    pub(crate) title: Title,
    pub(crate) template: &'a Template,
    /// Key of the part whose top layer makes the sandbox trust the gateway, if there is one.
    pub(crate) trusting: Option<&'a str>,
    /// A directory that this process can reach and mount on, to assemble the new root.
    pub(crate) stage: PathBuf,
    /// The disk, if this process can use paths of the host; otherwise the worker sends it as a mount, like the layers.
    pub(crate) disk: Option<PathBuf>,
    pub(crate) volumes: Vec<VolumePlan>,
    pub(crate) hostname: String,
    /// Size of `/dev/shm` in bytes: half of the memory limit.
    pub(crate) shm_bytes: u64,
    pub(crate) filter: &'a Filter,
    /// Limit on processes by the user namespace, where no cgroup counts them.
    pub(crate) max_processes: Option<u32>,
    /// Which user the kernel counts queues, timers and watchers of this sandbox for.
    pub(crate) accounting: Accounting,
    pub(crate) agent: AgentConfig,
    pub(crate) fault: Option<Fault>,
}

/// One volume of the sandbox.
pub(crate) struct VolumePlan {
    /// Its mount point inside.
    pub(crate) path: String,
    /// The volume, if this process can use paths of the host; otherwise the worker sends it as a mount, after the layers.
    pub(crate) folder: Option<PathBuf>,
}

/// What the first process reports when it has set itself up, or failed to.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum InitReport {
    /// Everything is in place.
    Ready {
        /// What this host could not give, as sentences for the user.
        limitations: Vec<String>,
    },
    /// It failed and ends.
    Failed(EngineError),
}

/// Runs the first process. Never returns: ends with the agent.
///
/// # Safety
/// Only for a fresh child: it closes every descriptor except the given ones.
pub(crate) unsafe fn run(mut plan: InitPlan<'_>, worker: OwnedFd, listener: OwnedFd) -> ! {
    // SAFETY: this is a fresh child that uses nothing but the two descriptors from here on.
    let descriptors = unsafe { fds::keep_only(vec![worker, listener]) };
    let Ok([worker, listener]) =
        descriptors.map(|descriptors| <[OwnedFd; 2]>::try_from(descriptors).expect("two went in"))
    else {
        leave(70)
    };
    // A panic must not unwind into the worker's frames, whose values are not ours.
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        set_up(&plan, worker.as_fd())
    }));
    let report = match outcome {
        Ok(Ok((limitations, listeners))) => {
            plan.agent.egress = Some(listeners);
            InitReport::Ready { limitations }
        }
        Ok(Err(error)) => InitReport::Failed(error),
        Err(_) => leave(74),
    };
    let text = serde_json::to_vec(&report).expect("a report has no map with odd keys");
    if socket::send(&worker, &text, &[]).is_err() || matches!(report, InitReport::Failed(_)) {
        leave(71);
    }
    match socket::receive(&worker) {
        Ok((message, _)) if message == GO => drop(worker),
        _ => leave(72),
    }
    plan.agent.host_listener = Some(listener);
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        sandyard_agent::run(plan.agent)
    })) {
        Ok(Ok(())) => leave(0),
        Ok(Err(_)) => leave(73),
        Err(_) => leave(74),
    }
}

/// Returns what this host could not give, and the egress listeners.
fn set_up(plan: &InitPlan<'_>, worker: impl AsFd) -> Result<(Vec<String>, EgressListeners)> {
    let mut steps = Faults::at(FaultProcess::Init, plan.fault);
    let mut limitations = Vec::new();
    steps.step("clear the launcher's arguments", || {
        plan.title.overwrite(c"sandyard-agent")
    })?;
    // While the worker mounts the disk, which takes about as long.
    let egress = egress::open(&mut steps, &mut limitations)?;
    let trees = steps.step("receive mounts", || receive_trees(worker))?;
    steps.step("become root inside", || identity::become_root(plan.mode))?;
    let (root, rest) = steps.step("assemble the root", || {
        root::assemble(plan, trees, &mut limitations)
    })?;
    let volumes = match plan.volumes.is_empty() {
        true => rest,
        false => steps.step("open volumes", || volumes::open(plan, rest))?,
    };
    steps.step("make /dev", || device::populate(&root, plan))?;
    steps.step("mount /proc", || kernel_fs::mount_proc(&root, plan))?;
    steps.step("mount /sys", || {
        kernel_fs::mount_sys(&root, plan, &mut limitations)
    })?;
    steps.step("enter the root", || root::enter(&root))?;
    // Only now: a link that the sandbox left in its root must not lead anywhere on the host.
    steps.step("set the host name", || {
        identity::set_hostname(Path::new("/"), &plan.hostname, egress.name_server)
    })?;
    if !plan.volumes.is_empty() {
        steps.step("mount volumes", || volumes::attach(plan, volumes))?;
    }
    steps.step("drop privileges", || {
        confine::confine(plan.filter, plan.accounting, plan.max_processes)
    })?;
    Ok((limitations, egress.listeners))
}

fn receive_trees(worker: impl AsFd) -> Result<Vec<OwnedFd>> {
    let (message, trees) = socket::receive(worker)
        .map_err(|error| EngineError::failed("receiving the worker's mounts", &error))?;
    if message.is_empty() {
        return Err(EngineError::new(ErrorKind::Failed, "the worker has ended"));
    }
    Ok(trees)
}

fn leave(code: i32) -> ! {
    // SAFETY: ends this process at once; destructors and exit handlers belong to the launcher's image, not to us.
    unsafe { libc::_exit(code) }
}
