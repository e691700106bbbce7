//! A file that reserves space on the host's disk.
//!
//! When another program fills the disk, what sandboxes have written may still be in memory. Releasing this file makes room to
//! write it out.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};

/// Least number of bytes to release at a time.
const STEP: u64 = 32 << 20;

/// The file, which may not exist.
#[derive(Debug)]
pub(crate) struct ReserveFile {
    path: PathBuf,
}

impl ReserveFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Bytes it reserves.
    pub(crate) fn bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |found| found.blocks() * 512)
    }

    /// Makes it reserve `bytes`. Does nothing on file systems that cannot reserve space.
    pub(crate) fn fill(&self, bytes: u64) -> io::Result<()> {
        let file = open(&self.path)?;
        file.set_len(bytes)?;
        let filled = fallocate(&file, FallocateFlags::empty(), 0, bytes);
        if filled.is_err() {
            // A partial reserve would be taken for a whole one.
            let _ = std::fs::remove_file(&self.path);
        }
        Ok(filled?)
    }

    /// Releases at least `bytes`, or all it has.
    pub(crate) fn release(&self, bytes: u64) -> io::Result<()> {
        let remaining = self.bytes().saturating_sub(bytes.max(STEP));
        if remaining == 0 {
            return std::fs::remove_file(&self.path);
        }
        open(&self.path)?.set_len(remaining)
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_and_given_back_in_steps() {
        let folder = tempfile::tempdir_in("/var/tmp").expect("a folder");
        let reserve = ReserveFile::new(folder.path().join("reserve"));
        assert_eq!(reserve.bytes(), 0);
        reserve.fill(3 * STEP).expect("fill");
        assert!(reserve.bytes() >= 3 * STEP);
        reserve.release(1).expect("release a step");
        let remaining = reserve.bytes();
        assert!((STEP..3 * STEP).contains(&remaining), "{remaining}");
        reserve.release(remaining).expect("release the rest");
        assert_eq!(reserve.bytes(), 0);
    }
}
