//! A file being written.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Gid, Mode, OFlags, Uid, XattrFlags};
use sandyard_wire::{ConnectError, routes};

use crate::filesystem::{from_io, make_all};
use crate::fs;
use crate::user::{self, Account};

/// Bytes gathered before they are written.
///
/// A small file arrives in several pieces but is to be written once: whoever watches the directory is told of one write.
const GATHER_BYTES: usize = 64 * 1024;

/// An open file, owned by its user before any byte is in it.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) path: PathBuf,
    file: OwnedFd,
    gathered: Vec<u8>,
    /// Whether it did not exist before, so that a failure may take it away again.
    is_new: bool,
    is_complete: bool,
}

impl Target {
    /// Opens a file for writing, making its directories; what was in it is gone.
    pub(super) fn open(
        path: PathBuf,
        account: &Account,
        metadata: &BTreeMap<String, String>,
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
            gathered: Vec::new(),
            is_new,
            is_complete: false,
            path: path.clone(),
        };
        target.check_is_file()?;
        target.give_to(account).map_err(failed)?;
        for (key, value) in metadata {
            target.set_metadata(key, value).map_err(failed)?;
        }
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

    fn give_to(&self, account: &Account) -> io::Result<()> {
        if !user::can_become(account.uid, account.gid) {
            return Ok(());
        }
        let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
        Ok(rustix::fs::fchown(&self.file, Some(uid), Some(gid))?)
    }

    fn set_metadata(&self, key: &str, value: &str) -> io::Result<()> {
        let name = format!("{}{key}", routes::METADATA_XATTR_PREFIX);
        let value = value.as_bytes();
        Ok(rustix::fs::fsetxattr(
            &self.file,
            name,
            value,
            XattrFlags::empty(),
        )?)
    }

    /// Appends bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.gathered.is_empty() && bytes.len() >= GATHER_BYTES {
            return fs::write_all(&self.file, bytes);
        }
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() >= GATHER_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        fs::write_all(&self.file, &self.gathered)?;
        self.gathered.clear();
        Ok(())
    }

    /// Writes what is left; only now the file stays.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.flush()?;
        self.is_complete = true;
        Ok(())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if self.is_new && !self.is_complete {
            // Half a file that was never there helps nobody, least of all on a full disk.
            let _ = rustix::fs::unlink(&self.path);
        }
    }
}

/// Creates a file or empties one that exists; tells which it was.
fn create(path: &Path) -> io::Result<(OwnedFd, bool)> {
    let always = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mode = Mode::from_raw_mode(0o644);
    let exclusive = OFlags::CREATE | OFlags::EXCL;
    match rustix::fs::open(path, always | exclusive, mode) {
        Ok(file) => Ok((file, true)),
        Err(rustix::io::Errno::EXIST) => {
            // Also creates what a dangling link points to.
            let existing = OFlags::CREATE | OFlags::TRUNC;
            Ok((rustix::fs::open(path, always | existing, mode)?, false))
        }
        Err(error) => Err(error.into()),
    }
}
