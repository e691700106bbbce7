//! Removes a sandbox, whatever state it is in.

use std::fs;
use std::io;
use std::path::Path;

use sandyard_core::{SandboxId, SandboxState};

use crate::boot::{birth, end_process, remove_cgroup, shut_down};
use crate::context::Context;
use crate::error::{EngineError, ErrorKind, Result};
use crate::layout::SandboxDir;
use crate::record::Record;
use crate::sys::Doing;
use crate::sys::clone::clone_into_namespaces;
use crate::sys::fds::keep_only;

/// How often removing a folder is tried again.
const RETRIES: usize = 20;

/// Removes it. Removing what is not there succeeds, so that a retry does.
pub(crate) fn delete(ctx: &Context, id: &SandboxId) -> Result<()> {
    match ctx.open(id) {
        // An unreadable record, as a power failure can leave one, must not make a sandbox that cannot be deleted.
        Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Failed) => {
            delete_unrecorded(ctx, id)
        }
        Err(error) => Err(error),
        Ok(open) => delete_recorded(ctx, &open.dir, open.record),
    }
}

/// Removes one whose lock the caller holds.
pub(crate) fn delete_recorded(ctx: &Context, dir: &SandboxDir, mut record: Record) -> Result<()> {
    // If that cannot be written, as on a full disk, then not: putting the folder aside needs no space.
    let _ = record.become_state(SandboxState::Deleting, dir);
    shut_down(ctx, dir, &mut record)?;
    throw_away(ctx, &record.id)?;
    // A ready one's mark goes last: while it is there, somebody tries again.
    let _ = fs::remove_file(ctx.data.spares().join(record.id.as_str()));
    Ok(())
}

/// Removes a folder without a record: a create that got no further, or a delete that had little left to do.
pub(crate) fn delete_unrecorded(ctx: &Context, id: &SandboxId) -> Result<()> {
    let dir = ctx.data.sandbox(id);
    if let Some(init) = birth(&dir) {
        end_process(init)?;
    }
    remove_cgroup(ctx, id.as_str())?;
    throw_away(ctx, id)
}

/// Puts the folder of a sandbox aside in one step and has it removed by a process of its own: a hundred thousand files take
/// their time, and nobody needs to wait for it.
fn throw_away(ctx: &Context, id: &SandboxId) -> Result<()> {
    let aside = ctx.data.trash().join(id.as_str());
    let dir = ctx.data.sandbox(id);
    let put_aside = fs::rename(dir.root(), &aside);
    remove_tree(dir.run())?;
    match put_aside {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.doing("put aside", aside.display())?,
    }
    remove_aside(&aside);
    Ok(())
}

/// Has a folder that was put aside removed by a process of its own.
pub(crate) fn remove_aside(aside: &Path) {
    if let Ok(None) = clone_into_namespaces(0, None) {
        // Locks end when all who have them open do.
        // SAFETY: this fork uses no descriptor that was open before, and drops none: it leaves by `_exit`.
        let _ = unsafe { keep_only(Vec::new()) };
        let _ = remove_tree(aside);
        leave();
    }
}

/// Removes what was put aside and is still there.
pub(crate) fn empty_trash(ctx: &Context) -> Result<()> {
    let folder = ctx.data.trash();
    let entries = fs::read_dir(&folder).doing("list", folder.display())?;
    let mut outcome = Ok(());
    for entry in entries.flatten() {
        // One that will not go must not keep the others.
        outcome = outcome.and(remove_tree(&entry.path()));
    }
    outcome
}

fn leave() -> ! {
    // SAFETY: ends this fork at once; what is on its stack belongs to the process it was forked from.
    unsafe { libc::_exit(0) }
}

/// Removes the folder of a sandbox with all in it; none is fine. A sandbox can make folders deeper than any path, and without
/// rights for their owner.
pub(crate) fn remove_tree(root: &Path) -> Result<()> {
    let mut removed = sandyard_template::remove_tree(root);
    for _ in 0..RETRIES {
        // Two may be at it, the one who threw it away and a sweep: each trips over what the other took, until it is gone.
        if removed.is_ok() || fs::symlink_metadata(root).is_err() {
            return Ok(());
        }
        removed = sandyard_template::remove_tree(root);
    }
    removed.map_err(|error| EngineError::template(format!("removing `{}`", root.display()), &error))
}
