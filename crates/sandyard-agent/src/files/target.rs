//! A file being written.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Gid, Mode, OFlags, Uid};
use sandyard_wire::ConnectError;

use crate::filesystem::{from_io, make_all};
use crate::user::{self, Account};
use crate::{fs, metadata};

/// Bytes that are collected before they are written.
///
/// A small file arrives in several pieces but is written once, so that a watcher of the directory sees one write.
const BUFFER_BYTES: usize = 64 * 1024;

/// An open file, owned by its user before any byte is in it.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) path: PathBuf,
    file: OwnedFd,
    buffered: Vec<u8>,
    /// Whether it did not exist before, so that a failure may delete it.
    is_new: bool,
    is_complete: bool,
}

impl Target {
    /// Opens a file for writing, creates its directories, and truncates it.
    pub(super) fn open(
        path: PathBuf,
        account: &Account,
        new_metadata: &BTreeMap<String, String>,
    ) -> Result<Self, ConnectError> {
        let failed = |error: io::Error| match error.raw_os_error() {
            Some(libc::EISDIR) => {
                ConnectError::invalid_argument(format!("path '{}' is a directory", path.display()))
            }
            _ => from_io(&path, &error),
        };
        if let Some(parent) = path.parent() {
            make_all(parent, account).map_err(failed)?;
        }
        let (file, is_new) = create(&path).map_err(failed)?;
        let target = Self {
            file,
            buffered: Vec::new(),
            is_new,
            is_complete: false,
            path: path.clone(),
        };
        target.check_is_file()?;
        target.set_owner(account).map_err(failed)?;
        metadata::replace(&target.file, new_metadata).map_err(failed)?;
        Ok(target)
    }

    fn check_is_file(&self) -> Result<(), ConnectError> {
        let stat =
            rustix::fs::fstat(&self.file).map_err(|error| from_io(&self.path, &error.into()))?;
        if rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file() {
            return Ok(());
        }
        Err(ConnectError::invalid_argument(format!(
            "path '{}' is not a regular file",
            self.path.display()
        )))
    }

    fn set_owner(&self, account: &Account) -> io::Result<()> {
        if !user::can_become(account.uid, account.gid) {
            return Ok(());
        }
        let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
        Ok(rustix::fs::fchown(&self.file, Some(uid), Some(gid))?)
    }

    /// Appends bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffered.is_empty() && bytes.len() >= BUFFER_BYTES {
            return fs::write_all(&self.file, bytes);
        }
        self.buffered.extend_from_slice(bytes);
        if self.buffered.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        fs::write_all(&self.file, &self.buffered)?;
        self.buffered.clear();
        Ok(())
    }

    /// Writes the rest; without this call a new file is deleted.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.flush()?;
        self.is_complete = true;
        Ok(())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if self.is_new && !self.is_complete {
            // Half of a new file is useless, especially on a full disk.
            let _ = rustix::fs::unlink(&self.path);
        }
    }
}

/// Creates a file or truncates an existing one; returns whether it is new.
fn create(path: &Path) -> io::Result<(OwnedFd, bool)> {
    let always = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mode = Mode::from_raw_mode(0o644);
    let exclusive = OFlags::CREATE | OFlags::EXCL;
    match rustix::fs::open(path, always | exclusive, mode) {
        Ok(file) => Ok((file, true)),
        Err(rustix::io::Errno::EXIST) => {
            // Also creates the target of a dangling link.
            let existing = OFlags::CREATE | OFlags::TRUNC;
            Ok((rustix::fs::open(path, always | existing, mode)?, false))
        }
        Err(error) => Err(error.into()),
    }
}
