//! What a disk image needs of the host's disk in order to stay writable.
//!
//! An image is sparse, and so are its journal and its tables. An ext4 that finds no blocks for these on a full host turns
//! read-only for everybody who uses it. Another program can take all space faster than any check notices, so they have their
//! blocks before the first write: 6 MiB of each disk in use.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate};

use crate::sys::ext4::{BLOCK, journal_ranges};

/// Blocks at the beginning: superblock, descriptors, the bitmaps of the first sixteen groups and the inode table of the first.
const TABLES: u64 = 546;

/// Gives the journal and the first tables of `image` their blocks. Best effort: what is on a disk can be read without them.
pub(crate) fn allocate(image: &Path) {
    let _ = try_allocate(image);
}

fn try_allocate(image: &Path) -> io::Result<()> {
    let image = File::options().read(true).write(true).open(image)?;
    let tables = (0, TABLES * BLOCK);
    for (offset, length) in journal_ranges(&image)?.into_iter().chain([tables]) {
        fallocate(&image, FallocateFlags::KEEP_SIZE, offset, length)?;
    }
    Ok(())
}
