//! Bounds on the growth of disk images while the host's disk is nearly full.
//!
//! A bound is a number of free blocks that ext4 keeps from every program inside.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sandyard_core::SandboxId;

use super::LEAST_GROWTH;
use super::image::{self, all_blocks, kernel_default, reserved_blocks};
use crate::context::Context;
use crate::disk::Space;
use crate::disk::growth::{self, DiskUse};
use crate::sys::ext4::LoopExt4;

/// Changes of a bound that are not worth a write, in blocks.
const SMALL_CHANGE: u64 = 64;

/// The bounds in force.
#[derive(Debug)]
pub(super) struct Bounds {
    /// Disks in use while space is scarce, by their images.
    disks: BTreeMap<PathBuf, BoundedDisk>,
    /// Images may be bounded, by this watcher or an earlier one.
    may_be_bounded: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            disks: BTreeMap::new(),
            may_be_bounded: true,
        }
    }
}

/// An image in use, in bytes.
#[derive(Debug)]
struct BoundedDisk {
    ext4: LoopExt4,
    /// Written and pending when space became scarce.
    base: u64,
    /// Written and pending at the last check.
    last: u64,
    /// How much it grew since the last check although no free block was left to it: into blocks that were allocated before.
    growth_when_closed: u64,
    /// Written by programs and not in the image yet.
    pending: u64,
    /// Free blocks kept from it.
    reserved: Option<u64>,
    /// Whether all free blocks are kept from it.
    is_closed: bool,
}

impl Bounds {
    /// Divides what is left among the images in use.
    pub(super) fn apply(&mut self, ctx: &Context, space: Space) {
        self.may_be_bounded = true;
        let images: Vec<_> = image::mounted(ctx).collect();
        self.forget_unmounted(&images);
        let mut measured = Vec::new();
        for (ext4, path) in images {
            let Ok(found) = fs::metadata(&path) else {
                continue;
            };
            let disk = self.disk(ext4, &path, space);
            let usage = disk.measure(found.blocks() * 512);
            measured.push((path, found.len(), usage));
        }
        let uses: Vec<DiskUse> = measured.iter().map(|(.., usage)| *usage).collect();
        let pending: u64 = uses.iter().map(|usage| usage.pending).sum();
        let remaining = space
            .free
            .saturating_sub(space.margin())
            .saturating_sub(pending);
        let shares = growth::divide(remaining, space.shared(), &uses);
        for ((path, size, _), share) in measured.into_iter().zip(shares) {
            if let Some(disk) = self.disks.get_mut(&path) {
                if space.is_critical() {
                    disk.close(&path, all_blocks(size));
                } else {
                    disk.is_closed = false;
                    disk.reserve(reserved_blocks(size, disk.last.saturating_add(share)));
                }
            }
        }
    }

    fn forget_unmounted(&mut self, images: &[(LoopExt4, PathBuf)]) {
        self.disks.retain(|path, disk| {
            let is_mounted = images
                .iter()
                .any(|(ext4, image)| *ext4 == disk.ext4 && image == path);
            if !is_mounted {
                disk.ext4.lift_old_dirty_limit();
            }
            is_mounted
        });
    }

    /// The entry of an image, made if it is new.
    fn disk(&mut self, ext4: LoopExt4, path: &Path, space: Space) -> &mut BoundedDisk {
        self.disks.entry(path.to_owned()).or_insert_with(|| {
            // Written to the image early, so that little is lost if the disk is full at once; best effort, as is the rest.
            let _ = ext4.set_dirty_limit(Some((space.reserve_file() / 8).min(64 << 20)));
            let total = total_bytes(ext4, path);
            BoundedDisk {
                ext4,
                base: total,
                last: total,
                growth_when_closed: 0,
                pending: 0,
                reserved: None,
                is_closed: false,
            }
        })
    }

    /// Lets images grow up to their limits again.
    pub(super) fn lift(&mut self, ctx: &Context) {
        if !std::mem::take(&mut self.may_be_bounded) {
            return;
        }
        // Some may have been unmounted since; their devices keep the limit.
        for disk in std::mem::take(&mut self.disks).into_values() {
            disk.ext4.lift_old_dirty_limit();
        }
        for (ext4, path) in image::mounted(ctx) {
            let default = kernel_default(fs::metadata(&path).map_or(0, |found| found.len()));
            if ext4.reserved() > default {
                let _ = ext4.set_reserved(default);
            }
            let _ = ext4.set_dirty_limit(None);
        }
    }

    /// What programs have written and is not in any image yet, in bytes.
    pub(super) fn pending_bytes(&self) -> u64 {
        self.disks.values().map(|disk| disk.pending).sum()
    }

    /// The images that have pending bytes.
    pub(super) fn pending_images(&self) -> Vec<(LoopExt4, PathBuf)> {
        let pending = self.disks.iter().filter(|(_, disk)| disk.pending > 0);
        pending
            .map(|(path, disk)| (disk.ext4, path.clone()))
            .collect()
    }

    /// The sandbox that grew the most since the last check although its disk was closed then. What it wrote before was allowed.
    pub(super) fn fastest_writer(&self) -> Option<SandboxId> {
        let grown = self
            .disks
            .iter()
            .filter(|(_, disk)| disk.growth_when_closed >= LEAST_GROWTH);
        let sandboxes = grown
            .filter_map(|(path, disk)| Some((disk.growth_when_closed, image::sandbox_of(path)?)));
        sandboxes
            .max_by_key(|(growth, _)| *growth)
            .map(|(_, id)| id)
    }
}

impl BoundedDisk {
    /// Takes a new measurement, of an image that has `allocated` bytes on the host's disk.
    fn measure(&mut self, allocated: u64) -> DiskUse {
        self.pending = self.ext4.pending_bytes();
        let total = allocated + self.pending;
        let growth = total.saturating_sub(self.last);
        self.growth_when_closed = if self.is_closed { growth } else { 0 };
        self.last = total;
        DiskUse {
            pending: self.pending,
            grown: total.saturating_sub(self.base),
            is_growing: growth > 0,
        }
    }

    /// Leaves no free block to it.
    fn close(&mut self, path: &Path, all_blocks: u64) {
        self.reserve(all_blocks);
        let has_none_left = |reserved: u64| reserved.abs_diff(all_blocks) < SMALL_CHANGE;
        if !self.is_closed && self.reserved.is_some_and(has_none_left) {
            self.is_closed = true;
            // Programs went on writing until now.
            self.last = total_bytes(self.ext4, path);
        }
    }

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

/// What programs have written to an image, in the image or pending.
fn total_bytes(ext4: LoopExt4, image: &Path) -> u64 {
    let allocated = fs::metadata(image).map_or(0, |found| found.blocks() * 512);
    allocated + ext4.pending_bytes()
}
