//! Removes a sandbox, whatever state it is in.

use std::fs;
use std::io;
use std::path::Path;

use sandyard_core::{SandboxId, SandboxState};

use crate::boot::shut_down;
use crate::context::Context;
use crate::error::{ErrorKind, Result};
use crate::layout::SandboxDir;
use crate::record::Record;
use crate::sys::Doing;

/// Removes it. Removing what is not there succeeds, so that a retry does.
pub(crate) fn delete(ctx: &Context, id: &SandboxId) -> Result<()> {
    match ctx.open(id) {
        Err(error) if error.kind == ErrorKind::NotFound => delete_unrecorded(ctx, id),
        Err(error) => Err(error),
        Ok(open) => delete_recorded(ctx, &open.dir, open.record),
    }
}

/// Removes one whose lock the caller holds.
pub(crate) fn delete_recorded(ctx: &Context, dir: &SandboxDir, mut record: Record) -> Result<()> {
    if record.state != SandboxState::Deleting {
        record.become_state(SandboxState::Deleting, dir)?;
    }
    shut_down(ctx, dir, &mut record)?;
    let _ = fs::remove_file(ctx.data.spares().join(record.id.as_str()));
    remove_tree(dir.root())
}

/// Removes a folder without a record: a create that got no further, or a delete that had little left to do.
pub(crate) fn delete_unrecorded(ctx: &Context, id: &SandboxId) -> Result<()> {
    crate::boot::remove_cgroup(ctx, id.as_str())?;
    remove_tree(ctx.data.sandbox(id).root())
}

/// The record tells a sweep what to go on with, the lock keeps others away meanwhile.
const KEPT_TO_THE_LAST: [&str; 2] = ["state.json", "lock"];

/// Removes the folder of a sandbox with all in it.
pub(crate) fn remove_tree(root: &Path) -> Result<()> {
    let list = || -> io::Result<()> {
        for entry in fs::read_dir(root)? {
            let entry = entry?;
            if KEPT_TO_THE_LAST
                .iter()
                .any(|name| entry.file_name() == *name)
            {
                continue;
            }
            if entry.file_type()?.is_dir() {
                make_writable(&entry.path());
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        fs::remove_dir_all(root)
    };
    match list() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => Ok(other.doing("remove", root.display())?),
    }
}

/// An ordinary user cannot empty folders that a sandbox made unwritable for their owner (overlay's `work` always is).
fn make_writable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    if rustix::process::geteuid().is_root() {
        return;
    }
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
    let Ok(entries) = fs::read_dir(path) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_writable(&entry.path());
        }
    }
}
