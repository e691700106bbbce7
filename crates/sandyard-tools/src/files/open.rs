//! Opening regular files only.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::reply::{Problem, Result};

/// Opens a regular file for reading. Opens nothing else, because opening a pipe blocks and opening a device has side effects.
pub(crate) fn open(path: &Path) -> Result<(File, Metadata)> {
    let metadata = path
        .symlink_metadata()
        .map_err(|error| failed(path, "accessed", &error))?;
    check(path, metadata.file_type())?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags())
        .open(path)
        .map_err(|error| failed(path, "opened", &error))?;
    // It may have been replaced since the first check.
    let metadata = file
        .metadata()
        .map_err(|error| failed(path, "accessed", &error))?;
    check(path, metadata.file_type())?;
    Ok((file, metadata))
}

/// Flags for opening without blocking, and without following a link that was created after the path was resolved.
pub(super) fn flags() -> i32 {
    (OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY).bits() as i32
}

/// Fails if it is not a regular file, and says what it is.
pub(super) fn check(path: &Path, kind: FileType) -> Result<()> {
    let path = path.display();
    if kind.is_file() {
        return Ok(());
    }
    if kind.is_dir() {
        return Err(Problem::new(format!(
            "{path} is a folder: list it with LS and give the path of a file in it"
        )));
    }
    let what = if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_symlink() {
        "a link that was just created"
    } else {
        "a device"
    };
    Err(Problem::new(format!(
        "{path} is {what}: only regular files can be read and written"
    )))
}

/// The problem for an I/O error, with what to do.
pub(crate) fn failed(path: &Path, what: &str, error: &io::Error) -> Problem {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => {
            Problem::new(format!("{path} does not exist: find files with LS or Glob"))
        }
        io::ErrorKind::PermissionDenied => Problem::new(format!(
            "{path} cannot be {what} by this user: change its permissions with a command (chmod, sudo)"
        )),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Problem::new(format!(
            "{path} cannot be {what}: the disk is full, delete something first"
        )),
        _ => Problem::new(format!("{path} cannot be {what}: {error}")),
    }
}
