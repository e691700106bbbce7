//! A file that takes room on the host's disk in order to give it back.
//!
//! What sandboxes have written may still be in memory when another program fills the disk. With the room of this file it can be
//! written all the same.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};

/// How much is given back at a time, at least.
const STEP: u64 = 32 << 20;

/// The file, by its path: it is there or it is not.
#[derive(Debug)]
pub(crate) struct ReserveFile {
    path: PathBuf,
}

impl ReserveFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Bytes it takes.
    pub(crate) fn bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |found| found.blocks() * 512)
    }

    /// Makes it take `bytes`. Does nothing on file systems that cannot promise room.
    pub(crate) fn fill(&self, bytes: u64) -> io::Result<()> {
        let file = open(&self.path)?;
        file.set_len(bytes)?;
        let filled = fallocate(&file, FallocateFlags::empty(), 0, bytes);
        if filled.is_err() {
            // Half a reserve would be taken for a whole one.
            let _ = std::fs::remove_file(&self.path);
        }
        Ok(filled?)
    }

    /// Gives back `bytes` or a little more, as long as there are any.
    pub(crate) fn release(&self, bytes: u64) -> io::Result<()> {
        let left = self.bytes().saturating_sub(bytes.max(STEP));
        if left == 0 {
            return std::fs::remove_file(&self.path);
        }
        open(&self.path)?.set_len(left)
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
        let left = reserve.bytes();
        assert!((STEP..3 * STEP).contains(&left), "{left}");
        reserve.release(left).expect("release the rest");
        assert_eq!(reserve.bytes(), 0);
    }
}
