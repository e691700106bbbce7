//! Keeps the host's disk from running full, and sandboxes from losing what they wrote when it does.
//!
//! A process of its own that looks at the host's free space a few times a second, more often when little is left. It knows
//! sandboxes by their disk images alone and never reads a record: records hold secrets.
//!
//! - Little is left: every image gets a bound on its growth (see [`growth`]). A program that writes more gets ENOSPC.
//! - Another program fills the disk: no image may grow any more, the reserve file gives its room back in steps, and what
//!   sandboxes have in memory is written out.
//! - A sandbox grows all the same, into blocks that it allocated before: it is paused until there is room.
//! - The kernel found errors on a disk: its sandbox is stopped, and the next start repairs the disk (see `disk::check`).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::mount::MountAttrFlags;
use rustix::process::{Signal, WaitOptions, waitpid};
use sandyard_core::{SandboxId, SandboxState};

use super::run_and_report;
use crate::context::Context;
use crate::disk::growth::{self, DiskUse};
use crate::disk::reserve_file::ReserveFile;
use crate::disk::{self, DiskRecord, IMAGE, Space};
use crate::error::ErrorKind;
use crate::mode::Mode;
use crate::record::Record;
use crate::sys::clone::{Forked, fork};
use crate::sys::ext4::{BLOCK, LoopExt4, journal_ranges};
use crate::sys::loopdev::LoopDevice;
use crate::sys::mount;
use crate::verbs::pause::DISK_FULL;
use crate::verbs::{list, pause, resume, stop};

/// How long nobody looks while there is plenty, and while there is not.
const CALM: Duration = Duration::from_millis(250);
const ALERT: Duration = Duration::from_millis(50);
/// How often disks are looked at for errors, and the reserve file is made again.
const ROUTINE_EVERY: Duration = Duration::from_secs(5);
/// How often folders are measured on a critically full host: that means to look at every file.
const MEASURE_EVERY: Duration = Duration::from_secs(2);
/// Free space below which the reserve file is used.
const NEARLY_NOTHING: u64 = 16 << 20;
/// Growth that counts: less is the kernel's own.
const LEAST_GROWTH: u64 = 1 << 20;
/// Changes of a bound that are not worth a write, in blocks.
const SMALL_CHANGE: u64 = 64;
/// Blocks of a group of ext4, and of the smallest last one that mkfs is sure to keep.
const GROUP_BLOCKS: u64 = 8 * BLOCK;
const SMALLEST_GROUP: u64 = 1024;
/// Free space above the shared part that must be left for journals to be allocated: the room they take is everybody's.
const ROOM_FOR_JOURNALS: u64 = 64 << 20;
/// Share of an image that is taken by its inode tables, which stay empty for the most part: 256 bytes for every 16 KiB.
const INODE_TABLES: u64 = 64;
/// From `linux/magic.h`: there a reserve would be memory.
const TMPFS_MAGIC: i64 = 0x0102_1994;

const DAMAGED: &str = "its disk has file system errors; the next start repairs it";

/// Watches until the launcher ends. For a fork of the launcher, whose process id is `launcher`.
pub(super) fn watch(ctx: &Context, launcher: rustix::process::Pid) {
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    let _ = ctx.title.overwrite(c"sandyard-disks");
    let mut watch = DiskWatch::new(ctx);
    while rustix::process::getppid() == Some(launcher) {
        let pause = watch.look();
        std::thread::sleep(pause);
    }
}

struct DiskWatch<'a> {
    ctx: &'a Context,
    reserve: ReserveFile,
    /// Whether the file system can promise room to a file.
    can_reserve: bool,
    /// What the kernel may hold in memory for all files.
    dirty_limit: u64,
    /// Disks in use while space is scarce, by their images.
    disks: BTreeMap<PathBuf, Watched>,
    /// Images may be bounded, by this watcher or one before it.
    are_bounded: bool,
    /// Sizes at the last look, of sandboxes whose disk is a folder.
    folders: BTreeMap<SandboxId, u64>,
    last_free: u64,
    /// Sandboxes may be paused for want of room.
    has_paused: bool,
    /// Resuming them failed: the next routine lets it be tried again.
    must_resume_again: bool,
    /// The process that pauses, resumes, stops or writes out, if one is at it.
    helper: Option<Helper>,
    routine: Option<Instant>,
    measured: Option<Instant>,
}

struct Helper {
    pid: i32,
    is_resuming: bool,
}

/// An image in use.
struct Watched {
    ext4: LoopExt4,
    /// Bytes written and pending when space became scarce.
    base: u64,
    /// The same at the last look.
    last: u64,
    /// How much it grew between the last two looks.
    growth: u64,
    pending: u64,
    /// Free blocks kept from it.
    reserved: Option<u64>,
}

impl<'a> DiskWatch<'a> {
    fn new(ctx: &'a Context) -> Self {
        let kind = rustix::fs::statfs(ctx.data.root()).map(|stat| stat.f_type);
        Self {
            ctx,
            reserve: ReserveFile::new(ctx.data.reserve_file()),
            can_reserve: ctx.mode == Mode::Root && kind.is_ok_and(|kind| kind != TMPFS_MAGIC),
            dirty_limit: dirty_limit(),
            disks: BTreeMap::new(),
            are_bounded: true,
            folders: BTreeMap::new(),
            last_free: u64::MAX,
            // A watcher before this one may have done so.
            has_paused: true,
            must_resume_again: false,
            helper: None,
            routine: None,
            measured: None,
        }
    }

    /// Looks once; returns how long to wait until the next look.
    fn look(&mut self) -> Duration {
        self.reap();
        let Ok(space) = Space::of(&self.ctx.data) else {
            return CALM;
        };
        let is_scarce = space.is_scarce(self.dirty_limit);
        if self.ctx.mode == Mode::Root {
            if is_scarce {
                self.bound_growth(space);
            } else {
                self.lift_bounds();
            }
            self.use_reserve(space);
        }
        if space.is_critical() {
            // First: there is one helper, and a sandbox that goes on writing makes it worse.
            self.pause_writer(space);
            self.write_out_pending();
        } else if self.has_paused && self.helper.is_none() && space.free >= space.admission() {
            self.has_paused = false;
            self.start_helper(true, resume_paused);
        }
        if self.routine.is_none_or(|at| at.elapsed() >= ROUTINE_EVERY) {
            self.routine = Some(Instant::now());
            self.dirty_limit = dirty_limit();
            self.has_paused |= std::mem::take(&mut self.must_resume_again);
            self.check_errors(space);
        }
        self.last_free = space.free;
        if is_scarce { ALERT } else { CALM }
    }

    /// Divides what is left among the images in use.
    fn bound_growth(&mut self, space: Space) {
        self.are_bounded = true;
        let images: Vec<_> = images(self.ctx).collect();
        self.disks.retain(|path, disk| {
            let is_mounted = images
                .iter()
                .any(|(ext4, image)| *ext4 == disk.ext4 && image == path);
            if !is_mounted {
                disk.ext4.lift_left_dirty_limit();
            }
            is_mounted
        });
        let mut measured = Vec::new();
        for (ext4, path) in images {
            let Ok(found) = fs::metadata(&path) else {
                continue;
            };
            let (size, allocated) = (found.len(), found.blocks() * 512);
            let disk = self.watched(ext4, &path, space);
            disk.pending = ext4.pending_bytes();
            let total = allocated + disk.pending;
            disk.growth = total.saturating_sub(disk.last);
            disk.last = total;
            let used = DiskUse {
                pending: disk.pending,
                grown: total.saturating_sub(disk.base),
                is_growing: disk.growth > 0,
            };
            measured.push((path, size, total, used));
        }
        let uses: Vec<DiskUse> = measured.iter().map(|(.., used)| *used).collect();
        let pending: u64 = uses.iter().map(|used| used.pending).sum();
        let left = space
            .free
            .saturating_sub(space.margin())
            .saturating_sub(pending);
        let shares = growth::divide(left, space.shared(), &uses);
        for ((path, size, total, _), share) in measured.into_iter().zip(shares) {
            if let Some(disk) = self.disks.get_mut(&path) {
                let blocks = match space.is_critical() {
                    true => all_blocks(size),
                    false => reserved_blocks(size, total.saturating_add(share)),
                };
                disk.reserve(blocks);
            }
        }
    }

    /// The entry of an image, made if it is new.
    fn watched(&mut self, ext4: LoopExt4, path: &Path, space: Space) -> &mut Watched {
        let data = &self.ctx.data;
        self.disks.entry(path.to_owned()).or_insert_with(|| {
            // Written to the image early, so that little is lost if the disk is full at once; best effort, as is the rest.
            let _ = ext4.set_dirty_limit(Some((space.reserve_file() / 8).min(64 << 20)));
            // Measured anew: the images before this one have just taken theirs.
            let free = Space::of(data).map_or(0, |now| now.free);
            if free > space.margin() + space.shared() + ROOM_FOR_JOURNALS {
                let _ = allocate_journal(path);
            }
            let allocated = fs::metadata(path).map_or(0, |found| found.blocks() * 512);
            let total = allocated + ext4.pending_bytes();
            Watched {
                ext4,
                base: total,
                last: total,
                growth: 0,
                pending: 0,
                reserved: None,
            }
        })
    }

    /// Lets images grow up to their limits again.
    fn lift_bounds(&mut self) {
        if !std::mem::take(&mut self.are_bounded) {
            return;
        }
        // Some may have been unmounted since; their devices keep the limit.
        for disk in std::mem::take(&mut self.disks).into_values() {
            disk.ext4.lift_left_dirty_limit();
        }
        for (ext4, path) in images(self.ctx) {
            let usual = kernel_default(fs::metadata(&path).map_or(0, |found| found.len()));
            if ext4.reserved() > usual {
                let _ = ext4.set_reserved(usual);
            }
            let _ = ext4.set_dirty_limit(None);
        }
    }

    /// Gives room back that sandboxes need for what they have written already.
    fn use_reserve(&mut self, space: Space) {
        if space.free < NEARLY_NOTHING {
            let pending: u64 = self.disks.values().map(|disk| disk.pending).sum();
            if self.reserve.bytes() > 0 {
                let _ = self.reserve.release(pending + NEARLY_NOTHING);
            }
        }
    }

    /// Has what programs have written brought to the images, if no helper is busy.
    fn write_out_pending(&mut self) {
        let unwritten: Vec<_> = self
            .disks
            .iter()
            .filter(|(_, disk)| disk.pending > 0)
            .map(|(path, disk)| (disk.ext4, path.clone()))
            .collect();
        if !unwritten.is_empty() && self.helper.is_none() {
            self.help(move |_| {
                unwritten
                    .iter()
                    .for_each(|(ext4, path)| write_out(*ext4, path))
            });
        }
    }

    /// Pauses the sandbox that grew the most since the last look, if free space went on falling.
    fn pause_writer(&mut self, space: Space) {
        let grown = match self.ctx.mode {
            Mode::Root => self.grown_images(),
            Mode::Subordinate { .. } | Mode::Rootless { .. } => self.grown_folders(),
        };
        let is_falling = space.free < self.last_free;
        if let Some(id) = grown.filter(|_| is_falling && self.helper.is_none()) {
            self.has_paused = true;
            self.help(move |ctx| drop(pause::pause_because(ctx, &id, DISK_FULL)));
        }
    }

    fn grown_images(&self) -> Option<SandboxId> {
        let grown = self
            .disks
            .iter()
            .filter(|(_, disk)| disk.growth >= LEAST_GROWTH);
        let sandboxes = grown.filter_map(|(path, disk)| Some((disk.growth, sandbox_of(path)?)));
        sandboxes
            .max_by_key(|(growth, _)| *growth)
            .map(|(_, id)| id)
    }

    fn grown_folders(&mut self) -> Option<SandboxId> {
        if self.measured.is_some_and(|at| at.elapsed() < MEASURE_EVERY) {
            return None;
        }
        let ids = list::ids(self.ctx).unwrap_or_default().into_iter();
        let sizes: BTreeMap<SandboxId, u64> = ids
            .map(|id| {
                let dir = self.ctx.data.sandbox(&id);
                let bytes = disk::used_bytes(&dir, &DiskRecord::Folder);
                (id, bytes)
            })
            .collect();
        self.measured = Some(Instant::now());
        let before = std::mem::replace(&mut self.folders, sizes);
        let growth = |id: &SandboxId, bytes: u64| Some(bytes.saturating_sub(*before.get(id)?));
        let grown = self.folders.iter();
        let grown = grown.filter_map(|(id, bytes)| Some((growth(id, *bytes)?, id)));
        let most = grown.filter(|(growth, _)| *growth >= LEAST_GROWTH).max();
        most.map(|(_, id)| id.clone())
    }

    /// Stops sandboxes whose disk the kernel found damaged, and keeps the reserve file filled while disks are in use.
    fn check_errors(&mut self, space: Space) {
        if self.ctx.mode != Mode::Root {
            return;
        }
        let images: Vec<_> = images(self.ctx).collect();
        let wanted = space.reserve_file();
        let room = space.margin() + space.shared() + 2 * wanted;
        if self.can_reserve
            && !images.is_empty()
            && self.reserve.bytes() < wanted
            && space.free >= room
        {
            let _ = self.reserve.fill(wanted);
        }
        let damaged: Vec<SandboxId> = images
            .iter()
            .filter(|(ext4, _)| ext4.errors() > 0)
            .filter_map(|(_, path)| sandbox_of(path))
            .collect();
        if !damaged.is_empty() && self.helper.is_none() {
            self.help(move |ctx| {
                for id in damaged {
                    let _ = stop::stop_because(ctx, &id, DAMAGED);
                }
            });
        }
    }

    /// Has `work` done by a process of its own: it may read records, and it may take long.
    fn help(&mut self, work: impl FnOnce(&Context)) {
        self.start_helper(false, |ctx| {
            work(ctx);
            true
        });
    }

    fn start_helper(&mut self, is_resuming: bool, work: impl FnOnce(&Context) -> bool) {
        let ctx = self.ctx;
        match fork() {
            Ok(Forked::Parent { pid }) => self.helper = Some(Helper { pid, is_resuming }),
            Ok(Forked::Child) => run_and_report(|| work(ctx)),
            Err(_) => self.must_resume_again |= is_resuming,
        }
    }

    fn reap(&mut self) {
        let Some(helper) = &self.helper else {
            return;
        };
        let pid = rustix::process::Pid::from_raw(helper.pid);
        let ended = match waitpid(pid, WaitOptions::NOHANG) {
            Ok(None) => return,
            ended => ended,
        };
        let has_worked = matches!(ended, Ok(Some((_, status))) if status.exit_status() == Some(0));
        self.must_resume_again |= helper.is_resuming && !has_worked;
        self.helper = None;
    }
}

impl Watched {
    fn reserve(&mut self, blocks: u64) {
        let is_same = |before: u64| before.abs_diff(blocks) < SMALL_CHANGE && blocks > before;
        if self.reserved == Some(blocks) || self.reserved.is_some_and(is_same) {
            return;
        }
        if self.ext4.set_reserved(blocks).is_ok() {
            self.reserved = Some(blocks);
        }
    }
}

/// Our images that are mounted, of sandboxes and volumes. Those of other data directories on this host are not ours to bound.
fn images(ctx: &Context) -> impl Iterator<Item = (LoopExt4, PathBuf)> {
    let ours = move |ext4: LoopExt4| {
        let image = ext4.image()?;
        let folder = image.parent().filter(|_| image.ends_with(IMAGE))?;
        let name = folder.file_name()?;
        // The process that attached it may see another path: only its end counts.
        let root = match folder.parent()?.file_name()?.to_str()? {
            "sandboxes" => ctx.data.sandboxes(),
            "volumes" => ctx.data.volumes(),
            _ => return None,
        };
        let path = root.join(name).join(IMAGE);
        path.exists().then_some((ext4, path))
    };
    LoopExt4::mounted().filter_map(ours)
}

/// Says whether images are in use that could fill the host's disk unwatched.
pub(super) fn has_images(ctx: &Context) -> bool {
    ctx.mode == Mode::Root && images(ctx).next().is_some()
}

/// The sandbox that an image belongs to; none for a volume's.
fn sandbox_of(image: &Path) -> Option<SandboxId> {
    let folder = image.parent()?;
    let is_sandbox = folder.parent()?.file_name()? == "sandboxes";
    is_sandbox
        .then(|| folder.file_name()?.to_str()?.parse().ok())
        .flatten()
}

/// Free blocks to keep from an image of `size` bytes so that it can hold no more than `most` bytes.
fn reserved_blocks(size: u64, most: u64) -> u64 {
    let usable = size - size / INODE_TABLES;
    let blocks = usable.saturating_sub(most) / BLOCK;
    blocks.clamp(
        kernel_default(size),
        all_blocks(size).max(kernel_default(size)),
    )
}

/// More free blocks than there can be, and fewer than the file system has: the kernel refuses all of them.
fn all_blocks(size: u64) -> u64 {
    let blocks = size / BLOCK;
    // mkfs leaves out a last group that has hardly room for its own tables. Less than a journal, so this much is never free.
    let tail = blocks % GROUP_BLOCKS;
    let kept = match blocks > GROUP_BLOCKS && tail < SMALLEST_GROUP {
        true => blocks - tail,
        false => blocks,
    };
    kept.saturating_sub(1)
}

/// What the kernel keeps for itself: 2 %, and at most 4,096 blocks.
fn kernel_default(size: u64) -> u64 {
    (size / BLOCK / 50).min(4096)
}

/// Gives the journal of an image its blocks, so that it can be written on a full disk: without it nothing else can.
fn allocate_journal(image: &Path) -> std::io::Result<()> {
    let image = File::options().read(true).write(true).open(image)?;
    for (offset, length) in journal_ranges(&image)? {
        fallocate(&image, FallocateFlags::KEEP_SIZE, offset, length)?;
    }
    Ok(())
}

/// Has the kernel write to the image what programs have written and it still has in memory.
fn write_out(ext4: LoopExt4, image: &Path) {
    let Ok(Some(device)) = LoopDevice::reopen(ext4.0, image) else {
        return;
    };
    // The same file system once more, if it is still mounted: only through a mount can it be asked.
    if !ext4.is_mounted() {
        return;
    }
    if let Ok(tree) = mount::detached_ext4(&device.path, MountAttrFlags::MOUNT_ATTR_NODEV) {
        let folder = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&tree));
        if let Ok(folder) = File::open(folder) {
            let _ = rustix::fs::syncfs(folder);
        }
    }
}

/// Resumes what was paused for want of room. Says whether nothing of that is left to do.
fn resume_paused(ctx: &Context) -> bool {
    let Ok(ids) = list::ids(ctx) else {
        return false;
    };
    let mut is_done = true;
    for id in ids {
        is_done &= match Record::read(&ctx.data.sandbox(&id)) {
            Ok(Some(record))
                if record.state == SandboxState::Paused
                    && record.reason.as_deref() == Some(DISK_FULL) =>
            {
                // One that is gone or has ended meanwhile has nothing to go on with.
                let resumed = resume::resume_for_room(ctx, &id);
                resumed.map_or_else(
                    |error| matches!(error.kind, ErrorKind::NotFound | ErrorKind::Conflict),
                    |_| true,
                )
            }
            Ok(_) => true,
            Err(_) => false,
        };
    }
    is_done
}

/// What the kernel may hold in memory for all files before it makes writers wait, in bytes.
fn dirty_limit() -> u64 {
    let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let pages = text.lines().find_map(|line| {
        line.strip_prefix("nr_dirty_threshold ")?
            .parse::<u64>()
            .ok()
    });
    pages.map_or(1 << 30, |pages| {
        pages.saturating_mul(rustix::param::page_size() as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_bounded_to_what_it_may_hold() {
        let size = 4 << 30;
        let usable = size - size / 64;
        assert_eq!(reserved_blocks(size, 1 << 30), (usable - (1 << 30)) / BLOCK);
        assert_eq!(reserved_blocks(size, size), 4096, "as the kernel has it");
        assert_eq!(reserved_blocks(size, 0), usable / BLOCK);
        assert!(all_blocks(size) >= reserved_blocks(size, 0));
        assert_eq!(reserved_blocks(0, 0), 0);
    }

    #[test]
    fn a_last_group_that_mkfs_leaves_out_is_not_counted() {
        const MIB: u64 = 1 << 20;
        assert_eq!(all_blocks(128 * MIB), 32_767);
        assert_eq!(
            all_blocks(129 * MIB),
            32_767,
            "a group of 1 MiB is left out"
        );
        assert_eq!(all_blocks(132 * MIB), 33_791);
        assert_eq!(all_blocks(MIB), 255, "the only group is not");
    }

    #[test]
    fn the_image_names_its_sandbox() {
        let image = Path::new("/data/sandboxes/ch3x0a5gnsufnpssgsc5/disk.img");
        assert_eq!(
            sandbox_of(image).map(|id| id.to_string()).as_deref(),
            Some("ch3x0a5gnsufnpssgsc5")
        );
        assert_eq!(sandbox_of(Path::new("/data/volumes/v1/disk.img")), None);
    }
}
