//! Deletes a sandbox, whatever state it is in.

use std::fs;
use std::io;
use std::path::Path;

use sandyard_core::{SandboxId, SandboxState};

use crate::boot::{noted_first_process, remove_cgroup, shut_down};
use crate::context::Context;
use crate::error::{EngineError, ErrorKind, Result};
use crate::layout::SandboxDir;
use crate::record::Record;
use crate::sys::OperationExt;

/// How often removing a folder is repeated.
const RETRIES: usize = 20;

/// Deletes it. Deleting one that does not exist succeeds, so that a retry does.
pub(crate) fn delete(ctx: &Context, id: &SandboxId) -> Result<()> {
    match ctx.open(id) {
        // A record that a power failure has damaged must not keep a sandbox from being deleted.
        Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Failed) => {
            delete_unrecorded(ctx, id)
        }
        Err(error) => Err(error),
        Ok(open) => delete_recorded(ctx, &open.dir, open.record),
    }
}

/// Deletes a sandbox whose lock the caller holds.
pub(crate) fn delete_recorded(ctx: &Context, dir: &SandboxDir, mut record: Record) -> Result<()> {
    // On a full disk this cannot be written. Moving the folder to the trash needs no space.
    let _ = record.become_state(SandboxState::Deleting, dir);
    shut_down(ctx, dir, &mut record)?;
    move_to_trash(ctx, &record.id)?;
    // The mark of a spare is removed last: while it exists, a failed deletion is repeated.
    let _ = fs::remove_file(ctx.data.spares().join(record.id.as_str()));
    Ok(())
}

/// Deletes a sandbox without a record: a create or a delete did not get to its end.
pub(crate) fn delete_unrecorded(ctx: &Context, id: &SandboxId) -> Result<()> {
    let dir = ctx.data.sandbox(id);
    if let Some(first) = noted_first_process(&dir) {
        ctx.runtime.end(ctx, first)?;
    }
    remove_cgroup(ctx, id.as_str())?;
    move_to_trash(ctx, id)
}

/// Moves the folder of a sandbox to the trash in one step, and removes it in the background: a hundred thousand files take a
/// while.
fn move_to_trash(ctx: &Context, id: &SandboxId) -> Result<()> {
    let trash = ctx.data.trash().join(id.as_str());
    let dir = ctx.data.sandbox(id);
    let moved = fs::rename(dir.root(), &trash);
    remove_tree(dir.run())?;
    match moved {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.operation("move to", trash.display())?,
    }
    remove_in_background(ctx, &trash);
    Ok(())
}

/// Removes a folder in a process of its own.
pub(crate) fn remove_in_background(ctx: &Context, folder: &Path) {
    ctx.kernel.run_in_background(&|| drop(remove_tree(folder)));
}

/// Removes what is left in the trash.
pub(crate) fn empty_trash(ctx: &Context) -> Result<()> {
    let folder = ctx.data.trash();
    let entries = fs::read_dir(&folder).operation("list", folder.display())?;
    let mut outcome = Ok(());
    for entry in entries.flatten() {
        // One that cannot be removed must not keep the others.
        outcome = outcome.and(remove_tree(&entry.path()));
    }
    outcome
}

/// Removes a folder with all in it, if it exists. A sandbox can make folders that are deeper than any path, and folders without
/// permissions for their owner.
pub(crate) fn remove_tree(root: &Path) -> Result<()> {
    let mut removed = sandyard_template::remove_tree(root);
    for _ in 0..RETRIES {
        // A sweep may be removing it too, and each fails on what the other has just removed.
        if removed.is_ok() || fs::symlink_metadata(root).is_err() {
            return Ok(());
        }
        removed = sandyard_template::remove_tree(root);
    }
    removed.map_err(|error| EngineError::template(format!("removing `{}`", root.display()), &error))
}
