//! Empty disks that are kept ready.
//!
//! An empty file system of each size is formatted once, as `blanks/<size>/master.img`. The launcher keeps copies of it ready, each
//! in a numbered folder that becomes the sandbox's folder by a rename. Copies are written out to the host's disk: attaching a loop
//! device to a file waits until the file has no dirty pages.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::image;
use crate::error::Result;
use crate::random;
use crate::sys::{OperationExt, write_out};

/// Copies kept ready of each size.
const COPIES: u32 = 128;
/// Number of sizes kept; the ones used last stay.
const SIZES: usize = 8;
const MASTER: &str = "master.img";

/// Makes the folder `root` with an empty disk of `size_bytes` in it.
pub(super) fn take(blanks: &Path, root: &Path, size_bytes: u64) -> Result<()> {
    let size_bytes = size_bytes.next_multiple_of(1 << 20);
    let folder = blanks.join(size_bytes.to_string());
    let start = u32::from_le_bytes(random::bytes()?) % COPIES;
    for offset in 0..COPIES {
        let copy = folder.join(((start + offset) % COPIES).to_string());
        match fs::rename(&copy, root) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).operation("take", copy.display())?,
        }
    }
    fs::create_dir_all(&folder).operation("make", folder.display())?;
    let master = folder.join(MASTER);
    if !master.exists() {
        image::format(&master, size_bytes, &image::USUAL_PARTS)?;
    }
    Ok(make_copy(&master, root).operation("make", root.display())?)
}

/// Makes the folder `root` with a copy of `master` in it.
fn make_copy(master: &Path, root: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(root)?;
    image::copy_sparse(master, &root.join(super::IMAGE))?;
    // The record is written to this file and then renamed.
    File::create(root.join("state.json.new")).map(drop)
}

/// Says whether many copies are missing.
pub(crate) fn needs_refill(blanks: &Path) -> bool {
    // Not as soon as one is taken: refilling is cheaper in one go.
    let enough = COPIES as usize / 2;
    let is_full = |folder: &PathBuf| fs::read_dir(folder).is_ok_and(|files| files.count() > enough);
    sizes(blanks).iter().any(|folder| !is_full(folder))
}

/// Makes the copies that are missing, and removes sizes that were not used lately.
pub(crate) fn refill(blanks: &Path) -> io::Result<()> {
    // Requests have priority.
    let _ = rustix::process::nice(10);
    let mut sizes = sizes(blanks);
    sizes.sort_by_key(|folder| {
        let changed = fs::metadata(folder).and_then(|metadata| metadata.modified());
        std::cmp::Reverse(changed.unwrap_or(SystemTime::UNIX_EPOCH))
    });
    for folder in sizes.drain(sizes.len().min(SIZES)..) {
        fs::remove_dir_all(folder)?;
    }
    for folder in sizes {
        refill_size(&folder)?;
    }
    Ok(())
}

fn refill_size(folder: &Path) -> io::Result<()> {
    let temporary = folder.join("new");
    for number in 0..COPIES {
        let copy = folder.join(number.to_string());
        if copy.exists() {
            continue;
        }
        let _ = fs::remove_dir_all(&temporary);
        make_copy(&folder.join(MASTER), &temporary)?;
        write_out(&File::open(temporary.join(super::IMAGE))?)?;
        fs::rename(&temporary, copy)?;
    }
    Ok(())
}

fn sizes(blanks: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(blanks).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.join(MASTER).exists())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_ready_disk_and_a_new_one_are_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let (blanks, first, second) = (
            folder.path().join("blanks"),
            folder.path().join("1"),
            folder.path().join("2"),
        );
        fs::create_dir(&blanks).expect("make");
        take(&blanks, &first, 20 << 20).expect("make a disk");
        assert!(needs_refill(&blanks));
        refill(&blanks).expect("refill");
        assert!(!needs_refill(&blanks));
        take(&blanks, &second, 20 << 20).expect("take a disk");
        let copies = fs::read_dir(blanks.join((20 << 20).to_string()))
            .expect("list")
            .count();
        assert_eq!(copies, COPIES as usize, "one copy less, and the master");
        let (first, second) = (first.join("disk.img"), second.join("disk.img"));
        assert_eq!(fs::metadata(&first).expect("size").len(), 20 << 20);
        assert_eq!(
            fs::read(&first).expect("read"),
            fs::read(&second).expect("read")
        );
        assert!(
            fs::metadata(&second).expect("blocks").blocks() * 512 < 2 << 20,
            "it is sparse"
        );
    }
}
