//! Advisory file locks, which end when their holder ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

/// A lock, held until it is dropped in every process that inherited it.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock at `path` if it is free. `None`: it is held.
    pub(crate) fn try_take(path: &Path) -> io::Result<Option<Self>> {
        Self::try_lock(Self::open(path)?)
    }

    fn open(path: &Path) -> io::Result<File> {
        OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path)
    }

    fn try_lock(file: File) -> io::Result<Option<Self>> {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// As [`Lock::try_take`], without making the file. Fails with `NotFound` if it does not exist.
    pub(crate) fn try_take_existing(path: &Path) -> io::Result<Option<Self>> {
        Self::try_lock(OpenOptions::new().write(true).open(path)?)
    }

    /// Says whether this is the lock at `path`: the file may have been removed while this process waited for it.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        let key = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        match (self.file.metadata(), std::fs::metadata(path)) {
            (Ok(own), Ok(current)) => key(own) == key(current),
            _ => false,
        }
    }

    /// Shares the lock at `path`, waiting for an exclusive holder.
    pub(crate) fn share(path: &Path) -> io::Result<Self> {
        let file = Self::open(path)?;
        flock(&file, FlockOperation::LockShared)?;
        Ok(Self { file })
    }

    /// Takes the lock at `path`, waiting for its holder up to `timeout`.
    pub(crate) fn take(path: &Path, timeout: Duration) -> io::Result<Option<Self>> {
        let deadline = Instant::now() + timeout;
        let mut pause = Duration::from_micros(200);
        loop {
            if let Some(lock) = Self::try_take(path)? {
                return Ok(Some(lock));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

impl AsRawFd for Lock {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}
