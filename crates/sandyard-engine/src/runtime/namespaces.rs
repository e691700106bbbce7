//! Sandboxes as processes in Linux namespaces: the first process is a clone of the worker that becomes the agent (see `init`).

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use sandyard_agent::{AgentConfig, StartFiles};
use sandyard_confine::rlimits::Accounting;

use super::{Launch, Mounts, Runtime, StartingSandbox, freeze};
use crate::boot::hostname;
use crate::context::Context;
use crate::disk::{DiskRecord, OpenDisk};
use crate::error::{EngineError, ErrorKind, Result};
use crate::id_range;
use crate::init::{GO, InitPlan, InitReport};
use crate::kernel::{FirstProcess, IdMap};
use crate::layout::SandboxDir;
use crate::mode::Mode;
use crate::oom;
use crate::record::Record;
use crate::steps::Steps;
use crate::sys::process::ProcessKey;
use crate::sys::{OperationExt, effective_user, socket};
use crate::volume;

/// How long a killed process may take to end. One in the middle of a system call can take a moment.
pub(crate) const KILL_TIMEOUT: Duration = Duration::from_secs(30);

/// The runtime of Linux namespaces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Namespaces;

impl Runtime for Namespaces {
    fn start<'a>(
        &self,
        ctx: &'a Context,
        launch: Launch<'_>,
        steps: &mut Steps<'a>,
    ) -> Result<Box<dyn StartingSandbox + 'a>> {
        let Launch { record, cgroup, .. } = launch;
        let (worker, first_end) = steps.step("make the handshake pair", || {
            socket::pair().operation("make", "a socket pair")
        })?;
        let child = steps.step("clone into namespaces", || {
            ctx.kernel.clone_first_process(FirstProcess {
                cgroup,
                owner: namespace_owner(record),
                worker: first_end,
                plan: plan(ctx, &launch),
                listener: launch.listener,
            })
        })?;
        let pidfd = child
            .pidfd
            .try_clone()
            .operation("duplicate", "a process handle")?;
        steps.undo("end first process", move || end(ctx, &pidfd));
        oom::prefer(child.pid);
        steps.step("map user ids", || {
            let map = id_map(ctx.mode, record.first_uid)?;
            Ok::<_, EngineError>(ctx.kernel.map_ids(child.pid, map)?)
        })?;
        steps.step("join the cgroup", || {
            ctx.kernel.join_cgroup(cgroup, child.pid)
        })?;
        Ok(Box::new(Starting {
            ctx,
            pid: child.pid,
            worker,
        }))
    }

    fn end(&self, ctx: &Context, first: ProcessKey) -> Result<()> {
        match first.open().operation("find", "the first process")? {
            Some(pidfd) => end(ctx, &pidfd),
            None => Ok(()),
        }
    }

    fn freeze(&self, ctx: &Context, record: &Record) -> Result<()> {
        freeze::freeze(ctx, record)
    }

    fn thaw(&self, ctx: &Context, record: &Record) -> Result<()> {
        freeze::thaw(ctx, record)
    }

    fn thaw_if_frozen(&self, ctx: &Context, record: &Record) -> Result<()> {
        freeze::thaw_if_frozen(ctx, record)
    }
}

/// A first process in its namespaces, which waits for the worker's messages.
struct Starting<'a> {
    ctx: &'a Context,
    pid: i32,
    /// The worker's end of the handshake.
    worker: OwnedFd,
}

impl StartingSandbox for Starting<'_> {
    fn first_process(&self) -> Option<ProcessKey> {
        ProcessKey::of(self.pid)
    }

    /// Sends disk, layers and volumes as mounts whose owners are shifted into the ids of the child.
    fn hand_over(&mut self, mounts: Mounts<'_>) -> Result<()> {
        let mut trees = Vec::new();
        if let (Mode::Root, OpenDisk::Mount(disk)) = (self.ctx.mode, mounts.disk) {
            let kernel = &self.ctx.kernel;
            let user_namespace = kernel.user_namespace(self.pid)?;
            kernel.shift_owners(&disk, &user_namespace)?;
            trees.push(disk);
            for layer in mounts.template.layers() {
                trees.push(kernel.clone_shifted(layer, &user_namespace)?);
            }
            for volume in mounts.volumes {
                kernel.shift_owners(&volume, &user_namespace)?;
                trees.push(volume);
            }
        }
        if trees.len() > socket::MAX_FDS {
            return Err(EngineError::new(
                ErrorKind::Invalid,
                format!(
                    "the sandbox has {} layers and volumes, and at most {} can be mounted",
                    trees.len(),
                    socket::MAX_FDS
                ),
            ));
        }
        let borrowed: Vec<_> = trees.iter().map(AsFd::as_fd).collect();
        Ok(socket::send(&self.worker, b"mounts", &borrowed)
            .operation("send mounts to", "the first process")?)
    }

    fn wait_ready(&mut self) -> Result<Vec<String>> {
        let (message, _) =
            socket::receive(&self.worker).operation("receive from", "the first process")?;
        if message.is_empty() {
            return Err(EngineError::new(
                ErrorKind::Failed,
                "the first process ended while setting itself up",
            ));
        }
        // Nothing of the user's has run yet, so the message can be trusted. The socket bounds its length.
        match serde_json::from_slice(&message)
            .map_err(|error| EngineError::failed("parsing the first process's report", &error))?
        {
            InitReport::Ready { limitations } => Ok(limitations),
            InitReport::Failed(error) => Err(error),
        }
    }

    fn release(&mut self) -> Result<()> {
        Ok(socket::send(&self.worker, GO, &[]).operation("send to", "the first process")?)
    }
}

/// Ends a first process, and with it everything in its pid namespace.
fn end(ctx: &Context, pidfd: &OwnedFd) -> Result<()> {
    if ctx
        .kernel
        .kill(pidfd, KILL_TIMEOUT)
        .operation("end", "the first process")?
    {
        return Ok(());
    }
    let message = format!(
        "the first process has not ended {} s after it was killed",
        KILL_TIMEOUT.as_secs()
    );
    Err(EngineError::new(ErrorKind::Busy, message).hint("try again"))
}

/// The sandbox's own root, so that the kernel counts what the sandbox uses for it alone, and not for host root together with all
/// others. Nothing on the host runs as that user.
fn namespace_owner(record: &Record) -> Option<u32> {
    record.first_uid.filter(|_| effective_user::is_available())
}

fn plan<'a>(ctx: &'a Context, launch: &Launch<'a>) -> InitPlan<'a> {
    let Launch { dir, record, .. } = *launch;
    InitPlan {
        mode: ctx.mode,
        title: ctx.title,
        template: launch.template,
        trusting: launch.trusting,
        stage: stage(ctx.mode, dir),
        disk: match record.disk {
            DiskRecord::Folder => Some(dir.disk()),
            DiskRecord::Image { .. } => None,
        },
        volumes: volume::plans(ctx, &record.spec.mounts),
        hostname: hostname(record),
        shm_bytes: record.spec.limits.memory_bytes / 2,
        filter: &ctx.filter,
        max_processes: (!ctx.cgroups.support().pids).then_some(record.spec.limits.pids),
        accounting: match namespace_owner(record) {
            Some(_) => Accounting::Alone,
            None => Accounting::Together,
        },
        agent: AgentConfig {
            tcp: Some(([127, 0, 0, 1], sandyard_agent::DEFAULT_PORT).into()),
            lasting_env: launch.template.defaults.env.clone(),
            default_workdir: launch.template.defaults.workdir.clone(),
            env: record.environment(),
            access_token: record.spec.access_token.clone(),
            is_init: true,
            start: Some(StartFiles::default()),
            tools: ctx.tools,
            ..AgentConfig::default()
        },
        fault: launch.fault,
    }
}

/// A directory that the first process can reach: with ids of its own it cannot enter the data directory.
fn stage(mode: Mode, dir: &SandboxDir) -> PathBuf {
    match mode {
        Mode::Root => ["/mnt", "/media", "/srv", "/tmp"]
            .map(PathBuf::from)
            .into_iter()
            .find(|path| path.is_dir())
            .unwrap_or_else(|| "/tmp".into()),
        Mode::Subordinate { .. } | Mode::Rootless { .. } => dir.stage(),
    }
}

fn id_map(mode: Mode, first_uid: Option<u32>) -> Result<IdMap> {
    let count = id_range::IDS_PER_RANGE;
    match (mode, first_uid) {
        (Mode::Rootless { uid, gid }, _) => Ok(IdMap::Single { uid, gid }),
        (Mode::Subordinate { .. }, _) => Ok(IdMap::Same { count }),
        (Mode::Root, Some(first)) => Ok(IdMap::Range { first, count }),
        (Mode::Root, None) => Err(EngineError::new(
            ErrorKind::Failed,
            "no range of user ids was claimed",
        )),
    }
}
