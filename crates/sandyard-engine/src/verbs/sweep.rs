//! Puts right what crashes have left: the way back of every interrupted verb.
//!
//! Safe at any time and any number of times: whatever a live worker holds is locked, and skipped.

use std::collections::BTreeSet;
use std::io::ErrorKind;

use sandyard_core::{SandboxId, SandboxState};

use super::{delete, fork, import, list, pool, volume};
use crate::boot::{remove_cgroup, shut_down};
use crate::clock;
use crate::context::Context;
use crate::error::Result;
use crate::freeze;
use crate::id_range;
use crate::layout::SandboxDir;
use crate::record::{DIED, Record};
use crate::sys::Doing;
use crate::sys::lock::Lock;
use crate::sys::process::ProcessKey;
use crate::trust;

/// Longer than any fork takes.
const FORK_PATIENCE_MS: u64 = 60 * 60 * 1000;

/// Sweeps everything; the first failure is reported after all of it was tried.
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
    // While this is held nobody is between making a folder and locking it: a free lock then means nobody is there.
    let Some(_births) = Lock::try_take(&ctx.data.births_lock()).doing("lock", "births.lock")?
    else {
        return Ok(());
    };
    let _lock = match Lock::try_take_existing(&dir.lock()) {
        Ok(Some(lock)) => Some(lock),
        Ok(None) => return Ok(()),
        // None made since the host started, or being removed.
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error).doing("lock", dir.lock().display())?,
    };
    drop(_births);
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
            record.reason = Some(DIED.to_owned());
            record.become_state(SandboxState::Stopped, dir)
        }
        // A snapshot or a pause that was cut off may have left it frozen.
        SandboxState::Running => freeze::thaw_if_frozen(ctx, &record),
        // A start that was cut off before it was complete.
        SandboxState::Stopped if dir.birth().exists() => {
            shut_down(ctx, dir, &mut record)?;
            record.write(dir)
        }
        SandboxState::Paused | SandboxState::Stopped => Ok(()),
    }
}

/// Layers with a certificate that no live sandbox stands on.
fn sweep_trust(ctx: &Context) -> Result<()> {
    let mut in_use = BTreeSet::new();
    for id in list::ids(ctx)? {
        // One that cannot be read might use any.
        let record = Record::read(&ctx.data.sandbox(&id))?;
        in_use.extend(record.and_then(|record| Some(record.trust?.layer)));
    }
    trust::sweep(&ctx.data, &in_use)
}

/// A claim that was written down but not made.
fn sweep_claim_notes(ctx: &Context) -> Result<()> {
    let folder = ctx.data.id_ranges();
    for entry in std::fs::read_dir(&folder)
        .doing("list", folder.display())?
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

/// A claim whose sandbox is gone.
fn sweep_id_ranges(ctx: &Context) -> Result<()> {
    for (range, id) in id_range::claims(&ctx.data.id_ranges())? {
        let kept = id
            .parse()
            .is_ok_and(|id: SandboxId| claims_range(ctx, &id, range));
        if !kept {
            id_range::revoke(&ctx.data.id_ranges(), range)?;
        }
    }
    Ok(())
}

/// Says whether a sandbox has that range, or may be about to.
fn claims_range(ctx: &Context, id: &SandboxId, range: u32) -> bool {
    let dir = ctx.data.sandbox(id);
    // Held: being created or started. Free, and held by us while we read: what the record says is all there is.
    let lock = Lock::try_take_existing(&dir.lock());
    if matches!(lock, Ok(None)) {
        return true;
    }
    matches!(Record::read(&dir), Ok(Some(record)) if record.id_range == Some(range))
}

/// A cgroup whose sandbox is gone.
fn sweep_cgroups(ctx: &Context) -> Result<()> {
    let existing: BTreeSet<String> = list::ids(ctx)?.into_iter().map(String::from).collect();
    let Ok(names) = ctx.cgroups.list() else {
        return Ok(());
    };
    let mut any_left = false;
    let mut outcome = Ok(());
    for name in names {
        // Listed before it was made, or deleted since: look again before touching it.
        let gone = !existing.contains(&name)
            && name
                .parse()
                .is_ok_and(|id: SandboxId| !ctx.data.sandbox(&id).root().is_dir());
        if gone {
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

/// Templates that a fork made on its way and was killed before it could remove.
fn sweep_forks(ctx: &Context) -> Result<()> {
    for template in import::templates(ctx)? {
        let age_ms = clock::now_ms().saturating_sub(template.created_unix_ms);
        if template.name.starts_with(fork::PREFIX) && age_ms > FORK_PATIENCE_MS {
            import::remove(ctx, &template.name)?;
        }
    }
    Ok(())
}
