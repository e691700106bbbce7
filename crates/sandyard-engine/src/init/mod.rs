//! The first process of a sandbox, from its birth in new namespaces until it becomes the agent.
//!
//! It runs as root of its own user namespace and of nothing else. It builds its view of the world from what the worker hands
//! over, gives up what it no longer needs, waits for the worker's word that the sandbox is on record, and turns into the
//! agent without an `exec`. If the worker dies before that word, it ends too: no sandbox exists that is not on record.

mod confine;
mod device;
mod identity;
mod kernel_fs;
mod root;
mod volumes;
pub(crate) mod way_out;

pub(crate) use identity::{possible_files, resolver_settings};

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use sandyard_agent::{AgentConfig, EgressDoors};
use sandyard_confine::rlimits::Counted;
use sandyard_confine::seccomp::Filter;
use sandyard_template::Template;
use serde::{Deserialize, Serialize};

use crate::error::{EngineError, ErrorKind, Result};
use crate::mode::Mode;
use crate::steps::{Fault, FaultPlace, Faults};
use crate::sys::title::Title;
use crate::sys::{fds, socket};

/// The worker's word that the sandbox is on record.
pub(crate) const GO: &[u8] = b"go";

/// All that the first process needs to know. It inherits this by the fork.
pub(crate) struct InitPlan<'a> {
    pub(crate) mode: Mode,
    pub(crate) title: Title,
    pub(crate) template: &'a Template,
    /// Key of the part whose top layer makes the sandbox trust the gateway, if there is one.
    pub(crate) trusting: Option<&'a str>,
    /// A directory that this process can reach and mount on, to put the new root together.
    pub(crate) stage: PathBuf,
    /// The disk, where this process can use paths of the host; else it comes as a mount, as the layers do.
    pub(crate) disk: Option<PathBuf>,
    pub(crate) volumes: Vec<VolumePlan>,
    pub(crate) hostname: String,
    /// Half of the memory limit: what `/dev/shm` may hold.
    pub(crate) shm_bytes: u64,
    pub(crate) filter: &'a Filter,
    /// Given where no cgroup counts processes: then the user namespace's own count of its users' must do.
    pub(crate) most_processes: Option<u32>,
    /// For whom the kernel counts queues, timers and watchers of this sandbox.
    pub(crate) counted: Counted,
    pub(crate) agent: AgentConfig,
    pub(crate) fault: Option<Fault>,
}

/// One volume of the sandbox.
pub(crate) struct VolumePlan {
    /// Where it belongs, as seen inside.
    pub(crate) path: String,
    /// The volume, where this process can use paths of the host; else it comes as a mount, after the layers.
    pub(crate) folder: Option<PathBuf>,
}

/// What the first process reports when it has set itself up, or failed to.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum InitReport {
    /// Everything is in place.
    Ready {
        /// What this host could not give, in words.
        lacks: Vec<String>,
    },
    /// It failed and ends.
    Failed(EngineError),
}

/// Runs the first process. Never returns: ends with the agent.
///
/// # Safety
/// To be called in a fresh child only: it closes every descriptor but the given ones.
pub(crate) unsafe fn run(mut plan: InitPlan<'_>, worker: OwnedFd, listener: OwnedFd) -> ! {
    // SAFETY: this is a fresh child that uses nothing but the two descriptors from here on.
    let kept = unsafe { fds::keep_only(vec![worker, listener]) };
    let Ok([worker, listener]) =
        kept.map(|kept| <[OwnedFd; 2]>::try_from(kept).expect("two went in"))
    else {
        leave(70)
    };
    // A panic must not unwind into the worker's frames, whose values are not ours.
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        set_up(&plan, worker.as_fd())
    }));
    let report = match outcome {
        Ok(Ok((lacks, doors))) => {
            plan.agent.egress = Some(doors);
            InitReport::Ready { lacks }
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

/// Returns what this host could not give, and the way out.
fn set_up(plan: &InitPlan<'_>, worker: impl AsFd) -> Result<(Vec<String>, EgressDoors)> {
    let mut steps = Faults::at(FaultPlace::Init, plan.fault);
    let mut lacks = Vec::new();
    steps.step("forget the launcher's arguments", || {
        plan.title.overwrite(c"sandyard-agent")
    })?;
    // While the worker mounts the disk: both take about as long.
    let way_out = way_out::open(&mut steps, &mut lacks)?;
    let trees = steps.step("receive mounts", || receive_trees(worker))?;
    steps.step("become root inside", || identity::become_root(plan.mode))?;
    let (root, rest) = steps.step("put the root together", || {
        root::assemble(plan, trees, &mut lacks)
    })?;
    let volumes = match plan.volumes.is_empty() {
        true => rest,
        false => steps.step("open volumes", || volumes::open(plan, rest))?,
    };
    steps.step("make /dev", || device::populate(&root, plan))?;
    steps.step("mount /proc", || kernel_fs::mount_proc(&root, plan))?;
    steps.step("mount /sys", || {
        kernel_fs::mount_sys(&root, plan, &mut lacks)
    })?;
    steps.step("enter the root", || root::enter(&root))?;
    // Only now: a link that the sandbox left in its root must not lead anywhere on the host.
    steps.step("set the host name", || {
        identity::set_hostname(Path::new("/"), &plan.hostname, way_out.name_server)
    })?;
    if !plan.volumes.is_empty() {
        steps.step("mount volumes", || volumes::attach(plan, volumes))?;
    }
    steps.step("give up privileges", || {
        confine::confine(plan.filter, plan.counted, plan.most_processes)
    })?;
    Ok((lacks, way_out.doors))
}

fn receive_trees(worker: impl AsFd) -> Result<Vec<OwnedFd>> {
    let (message, trees) = socket::receive(worker)
        .map_err(|error| EngineError::failed("receiving the worker's mounts", &error))?;
    if message.is_empty() {
        return Err(EngineError::new(ErrorKind::Failed, "the worker is gone"));
    }
    Ok(trees)
}

fn leave(code: i32) -> ! {
    // SAFETY: ends this process at once; destructors and exit handlers belong to the launcher's image, not to us.
    unsafe { libc::_exit(code) }
}
