//! Keeps the host's disk from running full, and sandboxes from losing what they wrote when it does.
//!
//! A process of its own checks the host's free space a few times a second, more often when little is left. It knows
//! sandboxes by their disk images alone and never reads a record: records hold secrets.
//!
//! - Little is left: every image gets a bound on its growth (`bounds`). A program that writes more gets ENOSPC.
//! - Another program fills the disk: no image may grow any more, the reserve file gives its room back in steps, and what
//!   sandboxes have in memory is written out.
//! - A sandbox grows all the same, into blocks that it allocated before: it is paused until there is room.
//! - The kernel found errors on a disk: its sandbox is stopped, and the next start repairs the disk (see `disk::check`).

mod bounds;
mod folder_sizes;
mod helper;
mod image;

use std::time::{Duration, Instant};

use rustix::process::Signal;
use sandyard_core::{SandboxId, SandboxState};

use crate::context::Context;
use crate::disk::reserve_file::ReserveFile;
use crate::disk::{Space, dirty_limit};
use crate::error::ErrorKind;
use crate::mode::Mode;
use crate::record::Record;
use crate::verbs::pause::DISK_FULL;
use crate::verbs::{list, pause, resume, stop};

use bounds::Bounds;
use folder_sizes::FolderSizes;
use helper::{Helper, Task};

/// Time between two checks while there is plenty of space.
const CALM_INTERVAL: Duration = Duration::from_millis(250);
/// The same while space is scarce.
const SCARCE_INTERVAL: Duration = Duration::from_millis(50);
/// How often disks are checked for errors and the reserve file is filled.
const ROUTINE_INTERVAL: Duration = Duration::from_secs(5);
/// Free space below which the reserve file is used, in bytes.
const NEARLY_NOTHING: u64 = 16 << 20;
/// Growth that counts, in bytes: less is the kernel's own.
const LEAST_GROWTH: u64 = 1 << 20;
/// From `linux/magic.h`. On tmpfs a reserve file would be memory.
const TMPFS_MAGIC: i64 = 0x0102_1994;

const DAMAGED: &str = "its disk has file system errors; the next start repairs it";

/// Watches until the launcher ends. For a fork of the launcher, whose process id is `launcher`.
pub(super) fn watch(ctx: &Context, launcher: rustix::process::Pid) {
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    let _ = ctx.title.overwrite(c"sandyard-disks");
    let mut watch = DiskWatch::new(ctx);
    while rustix::process::getppid() == Some(launcher) {
        let interval = watch.check();
        std::thread::sleep(interval);
    }
}

/// Says whether images are in use that could fill the host's disk unwatched.
pub(super) fn has_images(ctx: &Context) -> bool {
    ctx.mode == Mode::Root && image::mounted(ctx).next().is_some()
}

struct DiskWatch<'a> {
    ctx: &'a Context,
    reserve: ReserveFile,
    /// Whether the file system can promise room to a file.
    can_reserve: bool,
    /// What the kernel may hold in memory for all files, in bytes.
    dirty_limit: u64,
    bounds: Bounds,
    folders: FolderSizes,
    /// Free space at the last check, in bytes.
    last_free: u64,
    /// Sandboxes may be paused for want of room.
    may_have_paused: bool,
    helper: Helper,
    last_routine: Option<Instant>,
}

impl<'a> DiskWatch<'a> {
    fn new(ctx: &'a Context) -> Self {
        let kind = rustix::fs::statfs(ctx.data.root()).map(|stat| stat.f_type);
        Self {
            ctx,
            reserve: ReserveFile::new(ctx.data.reserve_file()),
            can_reserve: ctx.mode == Mode::Root && kind.is_ok_and(|kind| kind != TMPFS_MAGIC),
            dirty_limit: dirty_limit(),
            bounds: Bounds::default(),
            folders: FolderSizes::default(),
            last_free: u64::MAX,
            // An earlier watcher may have done so.
            may_have_paused: true,
            helper: Helper::default(),
            last_routine: None,
        }
    }

    /// Checks once. Returns the time until the next check.
    fn check(&mut self) -> Duration {
        self.helper.reap();
        let Ok(space) = Space::of(&self.ctx.data) else {
            return CALM_INTERVAL;
        };
        let is_scarce = space.is_scarce(self.dirty_limit);
        if self.ctx.mode == Mode::Root {
            match is_scarce {
                true => self.bounds.apply(self.ctx, space),
                false => self.bounds.lift(self.ctx),
            }
            self.use_reserve(space);
        }
        if space.is_critical() {
            // First: there is one helper, and a sandbox that goes on writing makes it worse.
            self.pause_writer(space);
            self.write_out_pending();
        } else if self.may_have_paused && self.helper.is_free() && space.free >= space.admission() {
            self.may_have_paused = false;
            self.helper.start(self.ctx, Task::Resume, resume_paused);
        }
        let is_routine_due = |last: Instant| last.elapsed() >= ROUTINE_INTERVAL;
        if self.last_routine.is_none_or(is_routine_due) {
            self.last_routine = Some(Instant::now());
            self.dirty_limit = dirty_limit();
            self.may_have_paused |= self.helper.take_failed_resume();
            if self.ctx.mode == Mode::Root {
                self.fill_reserve(space);
                self.stop_damaged();
            }
        }
        self.last_free = space.free;
        if is_scarce {
            SCARCE_INTERVAL
        } else {
            CALM_INTERVAL
        }
    }

    /// Gives room back that sandboxes need for what they have written already.
    fn use_reserve(&mut self, space: Space) {
        if space.free < NEARLY_NOTHING && self.reserve.bytes() > 0 {
            let pending = self.bounds.pending_bytes();
            let _ = self.reserve.release(pending + NEARLY_NOTHING);
        }
    }

    /// Keeps the reserve file filled while disks are in use and there is room for it.
    fn fill_reserve(&mut self, space: Space) {
        let target_bytes = space.reserve_file();
        let has_room = space.free >= space.margin() + space.shared() + 2 * target_bytes;
        if self.can_reserve
            && has_room
            && self.reserve.bytes() < target_bytes
            && image::mounted(self.ctx).next().is_some()
        {
            let _ = self.reserve.fill(target_bytes);
        }
    }

    /// Has what programs have written brought to the images, unless the helper is busy.
    fn write_out_pending(&mut self) {
        let pending = self.bounds.pending_images();
        if !pending.is_empty() {
            self.help(move |_| {
                for (ext4, path) in &pending {
                    image::write_out(*ext4, path);
                }
            });
        }
    }

    /// Pauses a sandbox that goes on growing without a right to, if free space goes on falling.
    fn pause_writer(&mut self, space: Space) {
        let writer = match self.ctx.mode {
            Mode::Root => self.bounds.fastest_writer(),
            Mode::Subordinate { .. } | Mode::Rootless { .. } => {
                self.folders.fastest_writer(self.ctx)
            }
        };
        let is_falling = space.free < self.last_free;
        if let Some(id) = writer.filter(|_| is_falling && self.helper.is_free()) {
            self.may_have_paused = true;
            self.help(move |ctx| drop(pause::pause_because(ctx, &id, DISK_FULL)));
        }
    }

    /// Stops sandboxes whose disk the kernel found damaged.
    fn stop_damaged(&mut self) {
        let damaged: Vec<SandboxId> = image::mounted(self.ctx)
            .filter(|(ext4, _)| ext4.errors() > 0)
            .filter_map(|(_, path)| image::sandbox_of(&path))
            .collect();
        if !damaged.is_empty() {
            self.help(move |ctx| {
                for id in damaged {
                    let _ = stop::stop_because(ctx, &id, DAMAGED);
                }
            });
        }
    }

    /// Has the helper do `work`, unless it is busy.
    fn help(&mut self, work: impl FnOnce(&Context)) {
        if self.helper.is_free() {
            self.helper.start(self.ctx, Task::Other, |ctx| {
                work(ctx);
                true
            });
        }
    }
}

/// Resumes every sandbox that was paused for want of room. Says whether all of them run again.
fn resume_paused(ctx: &Context) -> bool {
    let Ok(ids) = list::ids(ctx) else {
        return false;
    };
    // Not `all`: one that fails must not keep the others paused.
    ids.iter()
        .map(|id| resume_if_paused_for_room(ctx, id))
        .fold(true, |all, one| all & one)
}

fn resume_if_paused_for_room(ctx: &Context, id: &SandboxId) -> bool {
    let Ok(record) = Record::read(&ctx.data.sandbox(id)) else {
        return false;
    };
    let is_paused = record.is_some_and(|record| {
        record.state == SandboxState::Paused && record.reason.as_deref() == Some(DISK_FULL)
    });
    if !is_paused {
        return true;
    }
    match resume::resume_for_room(ctx, id) {
        Ok(_) => true,
        // It was deleted or has ended meanwhile.
        Err(error) => matches!(error.kind, ErrorKind::NotFound | ErrorKind::Conflict),
    }
}
