//! Keeps sandboxes from filling the host's disk: those without a hard limit, and all of them together.
//!
//! A folder has no size of its own, so the launcher measures, and stops a sandbox that wrote more than it may, or the one that
//! wrote the most when the host's free space runs out. Its files stay, and it can be started again once there is room.

use sandyard_core::SandboxState;

use crate::context::Context;
use crate::disk::{self, DiskRecord};
use crate::layout::SandboxDir;
use crate::mode::Mode;
use crate::record::Record;
use crate::verbs::{list, stop};

/// Stops the largest writer. For a fork: see [`is_needed`].
pub(super) fn make_room(ctx: &Context) {
    let largest = running(ctx).max_by_key(|(dir, record)| disk::used_bytes(dir, &record.disk));
    if let Some((_, record)) = largest {
        let _ = stop::stop_because(ctx, &record.id, "the host's disk was nearly full");
    }
}

/// Stops every sandbox that wrote more than its limit. For a fork: see [`is_needed`]. Takes as long as it takes to look at all their files.
pub(super) fn check_limits(ctx: &Context) {
    for (dir, record) in watched(ctx) {
        if disk::used_bytes(&dir, &record.disk) > record.spec.limits.disk_bytes {
            let _ = stop::stop_because(ctx, &record.id, "it wrote more than its disk limit");
        }
    }
}

/// Says whether there may be sandboxes to watch.
///
/// For the launcher itself, which must not read records: they hold secrets, and its memory is inherited by every sandbox's first
/// process.
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
