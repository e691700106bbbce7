//! A directory of our own to work in.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::sys::{self, sys};

/// A directory that goes with its guard.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    identity: (u64, u64),
}

impl Scratch {
    /// Makes one in the first place that takes it.
    pub(crate) fn make() -> io::Result<Self> {
        // Process ids repeat from one pid namespace to the next, and /tmp may be shared by several.
        let mut word = [0_u8; 8];
        rustix::rand::getrandom(&mut word, rustix::rand::GetRandomFlags::empty())?;
        let name = format!("sandyard-probe-{:016x}", u64::from_ne_bytes(word));
        let mut last = None;
        for parent in [
            std::env::temp_dir(),
            PathBuf::from("/dev/shm"),
            PathBuf::from("."),
        ] {
            let path = parent.join(&name);
            match fs::create_dir(&path).and_then(|()| identity(&path)) {
                Ok(identity) => return Ok(Self { path, identity }),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn is_bare(&self) -> bool {
        identity(&self.path).is_ok_and(|now| now == self.identity)
    }
}

impl Drop for Scratch {
    /// Where an attempt worked, something may be mounted here, the whole root even: it is taken off first, and never
    /// is anything removed but plain entries of the directory that was made.
    fn drop(&mut self) {
        const MOST_MOUNTS: u32 = 16;
        let point = sys::c_path(&self.path);
        for _ in 0..MOST_MOUNTS {
            if self.is_bare()
                || sys!(libc::SYS_umount2, point.as_c_str(), libc::MNT_DETACH).is_err()
            {
                break;
            }
        }
        if !self.is_bare() {
            return;
        }
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let _ = fs::remove_file(entry.path());
        }
        let _ = fs::remove_dir(&self.path);
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::metadata(path).map(|file| (file.dev(), file.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_directory_goes_with_its_files_and_keeps_what_its_links_point_to() {
        let scratch = Scratch::make().unwrap();
        let parent = tempfile::tempdir().unwrap();
        fs::write(parent.path().join("file"), "kept").unwrap();
        fs::write(scratch.path().join("file"), "gone").unwrap();
        std::os::unix::fs::symlink(parent.path(), scratch.path().join("link")).unwrap();
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists());
        assert!(parent.path().join("file").exists());
    }
}
