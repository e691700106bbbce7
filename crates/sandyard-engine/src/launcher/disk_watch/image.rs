//! Mounted disk images of this data directory, and the sizes of the ext4 on them.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::mount::MountAttrFlags;
use sandyard_core::SandboxId;

use crate::context::Context;
use crate::disk::IMAGE;
use crate::sys::ext4::{BLOCK, LoopExt4};
use crate::sys::loopdev::LoopDevice;
use crate::sys::mount;

/// Blocks of a group of ext4.
const GROUP_BLOCKS: u64 = 8 * BLOCK;
/// Blocks of the smallest last group that mkfs is sure to keep.
const SMALLEST_GROUP: u64 = 1024;
/// Share of an image that is taken by its inode tables, which stay empty for the most part: 256 bytes for every 16 KiB.
const INODE_TABLES: u64 = 64;

/// Mounted images of sandboxes and volumes. Those of other data directories on this host are left out.
pub(super) fn mounted(ctx: &Context) -> impl Iterator<Item = (LoopExt4, PathBuf)> {
    LoopExt4::mounted().filter_map(move |ext4: LoopExt4| {
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
    })
}

/// The sandbox that an image belongs to; none for a volume's.
pub(super) fn sandbox_of(image: &Path) -> Option<SandboxId> {
    let folder = image.parent()?;
    let is_sandbox = folder.parent()?.file_name()? == "sandboxes";
    is_sandbox
        .then(|| folder.file_name()?.to_str()?.parse().ok())
        .flatten()
}

/// Free blocks to keep from an image of `size` bytes so that it can hold no more than `max_bytes` bytes.
pub(super) fn reserved_blocks(size: u64, max_bytes: u64) -> u64 {
    let usable = size - size / INODE_TABLES;
    let blocks = usable.saturating_sub(max_bytes) / BLOCK;
    blocks.clamp(
        kernel_default(size),
        all_blocks(size).max(kernel_default(size)),
    )
}

/// More free blocks than there can be, and fewer than the file system has: the kernel refuses all of them.
pub(super) fn all_blocks(size: u64) -> u64 {
    let blocks = size / BLOCK;
    // mkfs leaves out a last group that has hardly room for its own tables. Less than a journal, so this much is never free.
    let tail = blocks % GROUP_BLOCKS;
    let usable_blocks = match blocks > GROUP_BLOCKS && tail < SMALLEST_GROUP {
        true => blocks - tail,
        false => blocks,
    };
    usable_blocks.saturating_sub(1)
}

/// What the kernel keeps for itself: 2 %, and at most 4,096 blocks.
pub(super) fn kernel_default(size: u64) -> u64 {
    (size / BLOCK / 50).min(4096)
}

/// Has the kernel write to the image what programs have written and it still has in memory.
pub(super) fn write_out(ext4: LoopExt4, image: &Path) {
    let Ok(Some(device)) = LoopDevice::reopen(ext4.0, image) else {
        return;
    };
    // The same file system once more, if it is still mounted: only through a mount can it be synced.
    if !ext4.is_mounted() {
        return;
    }
    if let Ok(tree) = mount::detached_ext4(&device.path, MountAttrFlags::MOUNT_ATTR_NODEV)
        && let Ok(folder) = File::open(format!("/proc/self/fd/{}", tree.as_raw_fd()))
    {
        let _ = rustix::fs::syncfs(folder);
    }
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
    fn an_image_names_its_sandbox() {
        let image = Path::new("/data/sandboxes/ch3x0a5gnsufnpssgsc5/disk.img");
        assert_eq!(
            sandbox_of(image).map(|id| id.to_string()).as_deref(),
            Some("ch3x0a5gnsufnpssgsc5")
        );
        assert_eq!(sandbox_of(Path::new("/data/volumes/v1/disk.img")), None);
    }
}
