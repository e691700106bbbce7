//! Starting and ending a sandbox: the steps that `create`, `start`, `stop` and `delete` share, whatever the runtime.

use std::io;
use std::path::Path;

use sandyard_core::SandboxState;

use crate::clock;
use crate::context::Context;
use crate::disk;
use crate::error::{EngineError, Result};
use crate::id_range;
use crate::layout::SandboxDir;
use crate::mode::Mode;
use crate::record::Record;
use crate::runtime::{KILL_TIMEOUT, Launch, Mounts};
use crate::steps::{Fault, Steps};
use crate::sys::process::ProcessKey;
use crate::sys::{OperationExt, socket};
use crate::trust::Trust;
use crate::volume::{self, NO_LIMIT};

/// Starts the sandbox of `record`, whose state is `creating` or `stopped`. On success its record says `running`.
///
/// The caller holds the sandbox's lock and finishes `steps`, which undo all of this on failure.
pub(crate) fn boot<'a>(
    ctx: &'a Context,
    dir: &SandboxDir,
    record: &mut Record,
    steps: &mut Steps<'a>,
    fault: Option<Fault>,
) -> Result<()> {
    let has_volumes = !record.spec.mounts.is_empty();
    // Held until the sandbox is on record: before that, nothing else shows that it uses these volumes.
    let _volumes_in_use = match has_volumes {
        true => Some(steps.step("find its volumes", || {
            volume::share_all(ctx, &record.spec.mounts)
        })?),
        false => None,
    };
    claim_ids(ctx, record, steps)?;
    let (trust, without_trust) = match steps.attempt("add the gateway's certificate", || {
        Trust::prepare(&ctx.data, &record.template, ctx.owners())
    })? {
        Ok(trust) => (trust, None),
        Err(error) => (None, Some(no_trust(&error))),
    };
    record.trust = trust.as_ref().map(|trust| trust.record.clone());
    let id = record.id.clone();
    steps.undo("remove cgroup", move || remove_cgroup(ctx, id.as_str()));
    let cgroup = steps.step("create the cgroup", || {
        ctx.kernel
            .create_cgroup(&ctx.cgroups, record.id.as_str(), &record.spec.limits)
    })?;
    let socket_path = dir.agent_socket();
    let unlink = socket_path.clone();
    steps.undo("remove socket", move || remove_file(&unlink));
    // Registered before the first process exists, so that it runs after that was ended. A sweep needs the note of one that has not.
    let noted = dir.clone();
    steps.undo("remove note of first process", move || {
        if let Some(first) = noted_first_process(&noted) {
            ctx.runtime.end(ctx, first)?;
        }
        remove_file(&noted.first_process())
    });
    let listener = steps.step("open the agent's socket", || {
        socket::listen(&socket_path).operation("listen on", socket_path.display())
    })?;
    let template = match &trust {
        Some(trust) => trust.over(&record.template),
        None => record.template.clone(),
    };
    let launch = Launch {
        dir,
        record,
        template: &template,
        trusting: trust.as_ref().map(|trust| trust.part_key(&template)),
        cgroup: &cgroup,
        listener: listener.into(),
        fault,
    };
    let mut starting = ctx.runtime.start(ctx, launch, steps)?;
    // After the start: the first process sets up its network meanwhile, which takes about as long.
    let (disk, repair) = steps.step("open the disk", || {
        let (disk, repair) = disk::open(&*ctx.kernel, dir, &mut record.disk)?;
        disk::prepare(&disk, &record.template)?;
        Ok::<_, EngineError>((disk, repair))
    })?;
    let mut repairs: Vec<String> = repair
        .map(|repair| format!("disk: {repair}"))
        .into_iter()
        .collect();
    let volumes = match has_volumes {
        true => steps.step("open its volumes", || {
            volume::open(ctx, &record.spec.mounts, &mut repairs)
        })?,
        false => Vec::new(),
    };
    let mounts = Mounts {
        template: &template,
        disk,
        volumes,
    };
    steps.step("hand over mounts", || starting.hand_over(mounts))?;
    let without = steps.step("wait for the first process", || starting.wait_ready())?;
    record.init = starting.first_process();
    record.started_ms = Some(clock::now_ms());
    record.reason = (!repairs.is_empty()).then(|| repairs.join("; "));
    let is_unbounded = has_volumes && ctx.mode != Mode::Root;
    record.limitations = ctx
        .limitations()
        .into_iter()
        .chain(without)
        .chain(without_trust)
        .chain(is_unbounded.then(|| NO_LIMIT.to_owned()))
        .collect();
    // Before it runs, so that a sweep can end it; its record says `running` only once it does.
    steps.step("note its first process", || {
        write_first_process(dir, record.init)
    })?;
    steps.step("let it run", || starting.release())?;
    steps.step("write its record", || {
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

/// The host name inside.
pub(crate) fn hostname(record: &Record) -> String {
    record
        .spec
        .hostname
        .clone()
        .unwrap_or_else(|| record.id.to_string())
}

fn write_first_process(dir: &SandboxDir, first: Option<ProcessKey>) -> Result<()> {
    let path = dir.first_process();
    let text = serde_json::to_vec(&first)
        .map_err(|error| EngineError::failed("noting the first process", &error))?;
    Ok(std::fs::write(&path, text).operation("write", path.display())?)
}

/// The first process that the last start noted, if there is one.
pub(crate) fn noted_first_process(dir: &SandboxDir) -> Option<ProcessKey> {
    serde_json::from_slice(&std::fs::read(dir.first_process()).ok()?).ok()?
}

/// Ends the processes of a sandbox and releases what only a running one has.
pub(crate) fn shut_down(ctx: &Context, dir: &SandboxDir, record: &mut Record) -> Result<()> {
    // All at once, and frozen ones too: a first process in a frozen version 1 cgroup would not die.
    ctx.kernel.kill_cgroup(&ctx.cgroups, record.id.as_str());
    for first in [record.init, noted_first_process(dir)]
        .into_iter()
        .flatten()
    {
        ctx.runtime.end(ctx, first)?;
    }
    remove_cgroup(ctx, record.id.as_str())?;
    remove_file(&dir.agent_socket())?;
    remove_file(&dir.first_process())?;
    if let Some(range) = record.id_range {
        id_range::release(&ctx.data.id_ranges(), range, &record.id)?;
    }
    record.forget_life();
    Ok(())
}

/// Ends everything in the cgroup of that name and removes it. A missing one counts as removed.
pub(crate) fn remove_cgroup(ctx: &Context, name: &str) -> Result<()> {
    ctx.kernel.remove_cgroup(&ctx.cgroups, name, KILL_TIMEOUT)
}

fn remove_file(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => Ok(other.operation("remove", path.display())?),
    }
}
