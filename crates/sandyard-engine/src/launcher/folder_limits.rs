//! Disk limits of sandboxes whose disk is a folder.
//!
//! A folder has no size limit, so the launcher measures it and stops a sandbox that wrote more than its limit. Its files stay, and
//! it can be started again. `disk_watch` watches what all sandboxes use together.

use sandyard_core::SandboxState;

use crate::context::Context;
use crate::disk::{self, DiskRecord};
use crate::layout::SandboxDir;
use crate::mode::Mode;
use crate::record::Record;
use crate::verbs::{list, stop};

/// Stops every sandbox that wrote more than its limit. Reads the size of all their files, so it may take a while. For a fork, since it reads
/// records (see [`is_needed`]).
pub(super) fn check_limits(ctx: &Context) {
    for (dir, record) in watched(ctx) {
        if disk::used_bytes(&dir, &record.disk) > record.spec.limits.disk_bytes {
            let _ = stop::stop_because(ctx, &record.id, "it wrote more than its disk limit");
        }
    }
}

/// Says whether there may be sandboxes to measure.
///
/// Reads no records: the launcher itself calls this, and the first process of every sandbox inherits the launcher's memory.
pub(super) fn is_needed(ctx: &Context) -> bool {
    ctx.mode != Mode::Root && list::ids(ctx).is_ok_and(|ids| !ids.is_empty())
}

fn watched(ctx: &Context) -> impl Iterator<Item = (SandboxDir, Record)> {
    running(ctx).filter(|(_, record)| record.disk == DiskRecord::Folder)
}

fn running(ctx: &Context) -> impl Iterator<Item = (SandboxDir, Record)> {
    let ids = list::ids(ctx).unwrap_or_default().into_iter();
    ids.filter_map(|id| {
        let dir = ctx.data.sandbox(&id);
        let record = Record::read(&dir).ok()??;
        (record.observed_state() == SandboxState::Running).then_some((dir, record))
    })
}
