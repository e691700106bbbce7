//! Removes what crashes have left: the undo of every interrupted verb.
//!
//! Safe at any time and any number of times: whatever a worker is changing is locked, and skipped.

use std::collections::BTreeSet;
use std::io::ErrorKind;

use sandyard_core::{SandboxId, SandboxState};

use super::{delete, fork, import, list, pool, volume};
use crate::boot::{remove_cgroup, shut_down};
use crate::clock;
use crate::context::Context;
use crate::error::Result;
use crate::id_range;
use crate::layout::SandboxDir;
use crate::record::Record;
use crate::sys::OperationExt;
use crate::sys::lock::Lock;
use crate::sys::process::ProcessKey;
use crate::trust;

/// Longer than any fork takes, in milliseconds.
const FORK_TIMEOUT_MS: u64 = 60 * 60 * 1000;

/// Sweeps everything. Goes on after a failure, and returns the first one.
pub(crate) fn sweep(ctx: &Context) -> Result<()> {
    let mut failure = None;
    let mut keep = |result: Result<()>| {
        if let Err(error) = result {
            failure.get_or_insert(error);
        }
    };
    let known: BTreeSet<SandboxId> = list::ids(ctx)?
        .into_iter()
        .chain(list::ids_in(&ctx.data.run())?)
        .collect();
    for id in known {
        keep(sweep_sandbox(ctx, &id));
    }
    keep(sweep_id_ranges(ctx));
    keep(sweep_claim_notes(ctx));
    keep(sweep_cgroups(ctx));
    keep(pool::sweep(ctx));
    keep(sweep_forks(ctx));
    keep(volume::sweep(ctx));
    keep(delete::empty_trash(ctx));
    keep(import::sweep_layers(ctx));
    keep(sweep_trust(ctx));
    failure.map_or(Ok(()), Err)
}

fn sweep_sandbox(ctx: &Context, id: &SandboxId) -> Result<()> {
    let dir = ctx.data.sandbox(id);
    // While this is held, no worker is between making a folder and locking it. A free lock then means that none works on it.
    let Some(creation_lock) =
        Lock::try_take(&ctx.data.creation_lock()).operation("lock", "the creation lock")?
    else {
        return Ok(());
    };
    let _lock = match Lock::try_take_existing(&dir.lock()) {
        Ok(Some(lock)) => Some(lock),
        Ok(None) => return Ok(()),
        // The host has restarted since, or the folder is being removed.
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error).operation("lock", dir.lock().display())?,
    };
    drop(creation_lock);
    match Record::read(&dir)? {
        None => delete::delete_unrecorded(ctx, id),
        Some(record) => sweep_record(ctx, &dir, record),
    }
}

fn sweep_record(ctx: &Context, dir: &SandboxDir, mut record: Record) -> Result<()> {
    let abandoned = record.owner.is_some_and(|owner| !owner.is_alive());
    match record.state {
        SandboxState::Creating | SandboxState::Deleting => {
            delete::delete_recorded(ctx, dir, record)
        }
        _ if abandoned => delete::delete_recorded(ctx, dir, record),
        SandboxState::Running | SandboxState::Paused
            if !record.init.is_some_and(ProcessKey::is_alive) =>
        {
            shut_down(ctx, dir, &mut record)?;
            record.reason = Some(record.reason_of_death());
            record.ending = None;
            record.become_state(SandboxState::Stopped, dir)
        }
        // An interrupted snapshot or pause may have left it frozen.
        SandboxState::Running => ctx.runtime.thaw_if_frozen(ctx, &record),
        // A start was interrupted.
        SandboxState::Stopped if dir.first_process().exists() => {
            shut_down(ctx, dir, &mut record)?;
            record.write(dir)
        }
        SandboxState::Paused | SandboxState::Stopped => Ok(()),
    }
}

/// Removes certificate layers that no sandbox uses.
fn sweep_trust(ctx: &Context) -> Result<()> {
    let mut in_use = BTreeSet::new();
    for id in list::ids(ctx)? {
        // A sandbox whose record cannot be read might use any of them, so this fails.
        let record = Record::read(&ctx.data.sandbox(&id))?;
        in_use.extend(record.and_then(|record| Some(record.trust?.layer)));
    }
    trust::sweep(&ctx.data, &in_use)
}

/// Removes notes of claims that were never made.
fn sweep_claim_notes(ctx: &Context) -> Result<()> {
    let folder = ctx.data.id_ranges();
    for entry in std::fs::read_dir(&folder)
        .operation("list", folder.display())?
        .flatten()
    {
        let name = entry.file_name();
        let Some(id) = name
            .to_str()
            .and_then(|name| name.strip_prefix('.')?.parse().ok())
        else {
            continue;
        };
        if !matches!(
            Lock::try_take_existing(&ctx.data.sandbox(&id).lock()),
            Ok(None)
        ) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// Releases user ids whose sandbox does not exist.
fn sweep_id_ranges(ctx: &Context) -> Result<()> {
    for (range, id) in id_range::claims(&ctx.data.id_ranges())? {
        let is_claimed = id
            .parse()
            .is_ok_and(|id: SandboxId| claims_range(ctx, &id, range));
        if !is_claimed {
            id_range::revoke(&ctx.data.id_ranges(), range)?;
        }
    }
    Ok(())
}

/// Says whether a sandbox has that range, or may be about to claim it.
fn claims_range(ctx: &Context, id: &SandboxId, range: u32) -> bool {
    let dir = ctx.data.sandbox(id);
    // A held lock means that it is being created or started. With the lock, the record is complete.
    let lock = Lock::try_take_existing(&dir.lock());
    if matches!(lock, Ok(None)) {
        return true;
    }
    matches!(Record::read(&dir), Ok(Some(record)) if record.id_range == Some(range))
}

/// Removes cgroups whose sandbox does not exist.
fn sweep_cgroups(ctx: &Context) -> Result<()> {
    let existing: BTreeSet<String> = list::ids(ctx)?.into_iter().map(String::from).collect();
    let Ok(names) = ctx.kernel.cgroup_names(&ctx.cgroups) else {
        return Ok(());
    };
    let mut any_left = false;
    let mut outcome = Ok(());
    for name in names {
        // It may have been made after the ids were listed, so check again.
        let is_orphan = !existing.contains(&name)
            && name
                .parse()
                .is_ok_and(|id: SandboxId| !ctx.data.sandbox(&id).root().is_dir());
        if is_orphan {
            outcome = outcome.and(remove_cgroup(ctx, &name));
        } else {
            any_left = true;
        }
    }
    if !any_left && existing.is_empty() {
        let _ = ctx.cgroups.remove_parent_if_empty();
    }
    outcome
}

/// Removes temporary templates of forks that were interrupted.
fn sweep_forks(ctx: &Context) -> Result<()> {
    for template in import::templates(ctx)? {
        let age_ms = clock::now_ms().saturating_sub(template.created_unix_ms);
        if template.name.starts_with(fork::PREFIX) && age_ms > FORK_TIMEOUT_MS {
            import::remove(ctx, &template.name)?;
        }
    }
    Ok(())
}
