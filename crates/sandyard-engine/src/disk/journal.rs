//! The journal of a disk image and its blocks on the host's disk.
//!
//! An image is sparse, and so is its journal. An ext4 whose journal finds no blocks on a full host turns read-only for everybody
//! who uses it, so the journal gets its blocks while there is still room.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate};

use super::space::{Space, dirty_limit};
use crate::sys::ext4::journal_ranges;

/// Gives the journal of `image` its blocks.
pub(crate) fn allocate(image: &Path) -> io::Result<()> {
    let image = File::options().read(true).write(true).open(image)?;
    for (offset, length) in journal_ranges(&image)? {
        fallocate(&image, FallocateFlags::KEEP_SIZE, offset, length)?;
    }
    Ok(())
}

/// Does so before a mount if the host's disk may be full before the launcher's `disk_watch` sees the image.
///
/// Best effort: what is on a disk can be read without it.
pub(crate) fn allocate_if_scarce(image: &Path) {
    let Ok(space) = Space::at(image) else { return };
    // Reading the limit takes longer than the rest, so it is left for disks that are small or nearly full.
    if space.is_scarce(u64::MAX) && space.is_scarce(dirty_limit()) {
        let _ = allocate(image);
    }
}
