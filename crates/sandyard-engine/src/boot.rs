//! Starting the first process of a sandbox: shared by `create` and `start`.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use sandyard_agent::{AgentConfig, StartFiles};
use sandyard_confine::rlimits::Counted;
use sandyard_core::SandboxState;
use sandyard_template::Template;

use crate::clock;
use crate::context::Context;
use crate::disk::{self, DiskRecord, OpenDisk};
use crate::error::{EngineError, ErrorKind, Result};
use crate::id_range;
use crate::init::{self, GO, InitPlan, InitReport};
use crate::layout::SandboxDir;
use crate::mode::Mode;
use crate::oom;
use crate::record::Record;
use crate::steps::{Fault, Steps};
use crate::sys::clone::{Cloned, clone_into_namespaces, clone_with_owner};
use crate::sys::process::{ProcessKey, kill_and_wait};
use crate::sys::{Doing, effective_user, idmap, socket};
use crate::trust::Trust;
use crate::volume::{self, NO_LIMIT};

/// Those the first process is born into. Network and cgroup it makes itself, when there is something to wait for anyway.
const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS;

/// How long a killed process may take to go; a process in the kernel's hands can take a moment.
const KILL_PATIENCE: Duration = Duration::from_secs(30);

/// Starts the sandbox of `record`, whose state is `creating` or `stopped`; on success it is on record as running.
///
/// The caller holds the sandbox's lock and finishes `steps`, which undo all of this on failure.
pub(crate) fn boot<'a>(
    ctx: &'a Context,
    dir: &SandboxDir,
    record: &mut Record,
    steps: &mut Steps<'a>,
    fault: Option<Fault>,
) -> Result<()> {
    // Until it is on record, nobody else would know that it has them.
    let _held = match record.spec.mounts.is_empty() {
        true => None,
        false => Some(steps.step("find its volumes", || {
            volume::hold(ctx, &record.spec.mounts)
        })?),
    };
    claim_ids(ctx, record, steps)?;
    let trust = steps.attempt("lay the gateway's certificate on top", || {
        Trust::prepare(&ctx.data, &record.template, ctx.owners())
    })?;
    let (trust, distrust) = match trust {
        Ok(trust) => (trust, None),
        Err(error) => (None, Some(no_trust(&error))),
    };
    record.trust = trust.as_ref().map(|trust| trust.record.clone());
    let id = record.id.clone();
    steps.undo("remove cgroup", move || remove_cgroup(ctx, id.as_str()));
    let cgroup = steps.step("make the cgroup", || {
        ctx.cgroups
            .create(record.id.as_str(), &record.spec.limits)
            .map_err(|error| EngineError::failed("making the cgroup", &error))
    })?;
    let socket_path = dir.agent_socket();
    let unlink = socket_path.clone();
    steps.undo("remove socket", move || remove_file(&unlink));
    let listener = steps.step("open the agent's socket", || {
        socket::listen(&socket_path).doing("listen on", socket_path.display())
    })?;
    let (ours, theirs) = steps.step("make the handshake pair", || {
        socket::pair().doing("make", "a socket pair")
    })?;
    let birthplace = cgroup
        .clone_into()
        .map_err(|error| EngineError::failed("opening the cgroup", &error))?;
    let birthplace = birthplace.as_ref().map(AsFd::as_fd);
    let shown = trust.as_ref().map_or(record.template.clone(), |trust| {
        trust.over(&record.template)
    });
    let trusting = trust.as_ref().map(|trust| trust.part_key(&shown));
    let child = steps.step("clone into namespaces", || {
        spawn(
            plan(ctx, dir, record, &shown, trusting, fault),
            birthplace,
            namespace_owner(record),
            theirs,
            listener.into(),
        )
    })?;
    let pidfd = child
        .pidfd
        .try_clone()
        .doing("duplicate", "a process handle")?;
    steps.undo("end first process", move || end(&pidfd));
    oom::prefer(child.pid);
    steps.step("map user ids", || {
        map_ids(ctx.mode, child.pid, record.first_uid)
    })?;
    steps.step("join the cgroup", || {
        cgroup
            .add_cloned(child.pid)
            .map_err(|error| EngineError::failed("joining the cgroup", &error))
    })?;
    // After the clone: the child makes its network meanwhile, which takes about as long.
    let (disk, repair) = steps.step("open the disk", || {
        let (disk, repair) = disk::open(dir, &mut record.disk)?;
        disk::prepare(&disk, &record.template)?;
        Ok::<_, EngineError>((disk, repair))
    })?;
    let mut repairs: Vec<String> = repair
        .map(|what| format!("disk: {what}"))
        .into_iter()
        .collect();
    let volumes = match record.spec.mounts.is_empty() {
        true => Vec::new(),
        false => steps.step("open its volumes", || {
            volume::open(ctx, &record.spec.mounts, &mut repairs)
        })?,
    };
    steps.step("hand over mounts", || {
        hand_over(ctx.mode, &shown, disk, volumes, child.pid, ours.as_fd())
    })?;
    let unbounded = ctx.mode != Mode::Root && !record.spec.mounts.is_empty();
    let lacks = steps.step("wait for the first process", || await_ready(ours.as_fd()))?;
    record.init = ProcessKey::of(child.pid);
    record.started_ms = Some(clock::now_ms());
    record.reason = (!repairs.is_empty()).then(|| repairs.join("; "));
    record.lacks = ctx
        .lacks()
        .into_iter()
        .chain(lacks)
        .chain(distrust)
        .chain(unbounded.then(|| NO_LIMIT.to_owned()))
        .collect();
    // So that a sweep can end it; on record as running only once it does.
    steps.step("note its first process", || write_birth(dir, record.init))?;
    steps.step("let it run", || {
        socket::send(&ours, GO, &[]).doing("send to", "the first process")
    })?;
    steps.step("put it on record as running", || {
        record.become_state(SandboxState::Running, dir)
    })
}

fn no_trust(error: &EngineError) -> String {
    format!("programs inside do not trust the gateway, and fail where it changes requests: {error}")
}

fn claim_ids<'a>(ctx: &'a Context, record: &mut Record, steps: &mut Steps<'a>) -> Result<()> {
    if ctx.mode != Mode::Root {
        return Ok(());
    }
    let range = steps.step("claim user ids", || {
        id_range::claim(&ctx.data.id_ranges(), &record.id)
    })?;
    let id = record.id.clone();
    steps.undo("release user ids", move || {
        id_range::release(&ctx.data.id_ranges(), range, &id)
    });
    record.id_range = Some(range);
    record.first_uid = Some(id_range::first_id(range));
    Ok(())
}

/// The sandbox's own root, so that the kernel counts what it uses for the sandbox alone, and not for host root together with all
/// others. Nothing on the host runs as that user.
fn namespace_owner(record: &Record) -> Option<u32> {
    record.first_uid.filter(|_| effective_user::is_available())
}

fn spawn(
    plan: InitPlan<'_>,
    cgroup: Option<BorrowedFd<'_>>,
    owner: Option<u32>,
    theirs: OwnedFd,
    listener: OwnedFd,
) -> Result<Cloned> {
    let cloned = match owner {
        Some(owner) => clone_with_owner(NAMESPACES, cgroup, owner),
        None => clone_into_namespaces(NAMESPACES, cgroup),
    };
    if let Some(child) = cloned.doing("clone", "the first process")? {
        return Ok(child);
    }
    // SAFETY: this is the fresh child; nothing of the worker's is used from here on.
    unsafe { init::run(plan, theirs, listener) }
}

fn plan<'a>(
    ctx: &'a Context,
    dir: &SandboxDir,
    record: &Record,
    shown: &'a Template,
    trusting: Option<&'a str>,
    fault: Option<Fault>,
) -> InitPlan<'a> {
    InitPlan {
        mode: ctx.mode,
        title: ctx.title,
        template: shown,
        trusting,
        stage: stage(ctx.mode, dir),
        disk: match record.disk {
            DiskRecord::Folder => Some(dir.disk()),
            DiskRecord::Image { .. } => None,
        },
        volumes: volume::plans(ctx, &record.spec.mounts),
        hostname: hostname(record),
        shm_bytes: record.spec.limits.memory_bytes / 2,
        filter: &ctx.filter,
        most_processes: (!ctx.cgroups.support().pids).then_some(record.spec.limits.pids),
        counted: match namespace_owner(record) {
            Some(_) => Counted::Alone,
            None => Counted::Together,
        },
        agent: AgentConfig {
            tcp: Some(([127, 0, 0, 1], sandyard_agent::DEFAULT_PORT).into()),
            env: record.environment(),
            access_token: record.spec.access_token.clone(),
            is_init: true,
            start: Some(StartFiles::default()),
            tools: ctx.tools,
            ..AgentConfig::default()
        },
        fault,
    }
}

/// The name the machine has inside.
pub(crate) fn hostname(record: &Record) -> String {
    record
        .spec
        .hostname
        .clone()
        .unwrap_or_else(|| record.id.to_string())
}

/// A directory the first process can reach: with ids of its own it cannot enter our data directory.
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

fn map_ids(mode: Mode, pid: i32, first_uid: Option<u32>) -> Result<()> {
    match (mode, first_uid) {
        (Mode::Rootless { uid, gid }, _) => Ok(idmap::write_single_maps(pid, uid, gid)?),
        (Mode::Subordinate { .. }, _) => Ok(idmap::write_same_maps(pid, id_range::IDS_PER_RANGE)?),
        (Mode::Root, Some(first)) => Ok(idmap::write_maps(pid, first, id_range::IDS_PER_RANGE)?),
        (Mode::Root, None) => Err(EngineError::new(
            ErrorKind::Failed,
            "no range of user ids was claimed",
        )),
    }
}

/// Sends the disk, every layer and every volume as mounts whose owners are shifted into the child's ids.
fn hand_over(
    mode: Mode,
    shown: &Template,
    disk: OpenDisk,
    volumes: Vec<OwnedFd>,
    pid: i32,
    child: BorrowedFd<'_>,
) -> Result<()> {
    let mut trees = Vec::new();
    if let (Mode::Root, OpenDisk::Mount(tree)) = (mode, disk) {
        let user_namespace = idmap::user_namespace(pid)?;
        idmap::shift(&tree, &user_namespace)?;
        trees.push(tree);
        for layer in shown.layers() {
            trees.push(idmap::shifted_read_only(layer, &user_namespace)?);
        }
        for volume in volumes {
            idmap::shift(&volume, &user_namespace)?;
            trees.push(volume);
        }
    }
    if trees.len() > socket::MAX_FDS {
        return Err(EngineError::new(
            ErrorKind::Invalid,
            format!("{} layers and volumes are too many to mount", trees.len()),
        ));
    }
    let borrowed: Vec<_> = trees.iter().map(AsFd::as_fd).collect();
    Ok(socket::send(child, b"mounts", &borrowed).doing("send mounts to", "the first process")?)
}

fn await_ready(child: BorrowedFd<'_>) -> Result<Vec<String>> {
    let (message, _) = socket::receive(child).doing("hear from", "the first process")?;
    if message.is_empty() {
        return Err(EngineError::new(
            ErrorKind::Failed,
            "the first process ended while setting itself up",
        ));
    }
    // The child ran nothing of the user's yet: its word can be trusted as far as its length, which the socket bounds.
    match serde_json::from_slice(&message)
        .map_err(|error| EngineError::failed("understanding the first process", &error))?
    {
        InitReport::Ready { lacks } => Ok(lacks),
        InitReport::Failed(error) => Err(error),
    }
}

/// Ends a first process, if that very one still runs.
pub(crate) fn end_process(init: ProcessKey) -> Result<()> {
    match init.open().doing("find", "the first process")? {
        Some(pidfd) => end(&pidfd),
        None => Ok(()),
    }
}

/// Ends a first process, and with it everything in its pid namespace.
fn end(pidfd: &OwnedFd) -> Result<()> {
    if kill_and_wait(pidfd, KILL_PATIENCE).doing("end", "the first process")? {
        return Ok(());
    }
    // A host that is very busy takes its time: whoever asks again may find it gone.
    Err(EngineError::new(
        ErrorKind::Busy,
        "the first process does not die",
    ))
}

fn write_birth(dir: &SandboxDir, init: Option<ProcessKey>) -> Result<()> {
    let text = serde_json::to_vec(&init)
        .map_err(|error| EngineError::failed("noting the first process", &error))?;
    Ok(std::fs::write(dir.birth(), text).doing("write", dir.birth().display())?)
}

/// The first process that was noted last, if there is one.
pub(crate) fn birth(dir: &SandboxDir) -> Option<ProcessKey> {
    serde_json::from_slice(&std::fs::read(dir.birth()).ok()?).ok()?
}

/// Ends the live processes of a sandbox and gives back what only live ones hold.
pub(crate) fn shut_down(ctx: &Context, dir: &SandboxDir, record: &mut Record) -> Result<()> {
    if let Ok(cgroup) = ctx.cgroups.open(record.id.as_str()) {
        // All at once, and frozen ones too; the pid namespace would take care of them, but not of a frozen v1 group.
        let _ = cgroup.kill();
        let _ = cgroup.thaw();
    }
    for init in [record.init, birth(dir)].into_iter().flatten() {
        end_process(init)?;
    }
    remove_cgroup(ctx, record.id.as_str())?;
    remove_file(&dir.agent_socket())?;
    remove_file(&dir.birth())?;
    if let Some(range) = record.id_range {
        id_range::release(&ctx.data.id_ranges(), range, &record.id)?;
    }
    record.forget_life();
    Ok(())
}

/// Removes the cgroup of that name with all in it; none is fine.
pub(crate) fn remove_cgroup(ctx: &Context, name: &str) -> Result<()> {
    let Ok(cgroup) = ctx.cgroups.open(name) else {
        return Ok(());
    };
    let _ = cgroup.kill();
    let _ = cgroup.thaw();
    let removed = cgroup
        .wait_empty(KILL_PATIENCE)
        .and_then(|()| cgroup.remove());
    removed.map_err(|error| EngineError {
        kind: match error.is_busy() {
            true => ErrorKind::Busy,
            false => ErrorKind::Failed,
        },
        ..EngineError::failed("removing the cgroup", &error)
    })
}

fn remove_file(path: &std::path::Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => Ok(other.doing("remove", path.display())?),
    }
}
