//! Opening what may be anything.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::reply::Problem;

/// Opens a regular file to be read. Nothing else is even touched: opening a pipe waits, and opening a device does things.
pub(crate) fn open(path: &Path) -> Result<(File, Metadata), Problem> {
    let metadata = path
        .symlink_metadata()
        .map_err(|error| failed(path, "looked at", &error))?;
    check(path, metadata.file_type())?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags())
        .open(path)
        .map_err(|error| failed(path, "opened", &error))?;
    // It may have been replaced in between.
    let metadata = file
        .metadata()
        .map_err(|error| failed(path, "looked at", &error))?;
    check(path, metadata.file_type())?;
    Ok((file, metadata))
}

/// Never waits, and never follows a link that was put there after the path was resolved.
pub(super) fn flags() -> i32 {
    (OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY).bits() as i32
}

/// Refuses what is no regular file, and says what it is.
pub(super) fn check(path: &Path, kind: FileType) -> Result<(), Problem> {
    let path = path.display();
    if kind.is_file() {
        return Ok(());
    }
    if kind.is_dir() {
        return Err(Problem::new(format!(
            "{path} is a folder: list it with LS, and name a file in it"
        )));
    }
    let what = if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_symlink() {
        "a link that was just made"
    } else {
        "a device"
    };
    Err(Problem::new(format!(
        "{path} is {what}, not a file with content: only regular files are read and written"
    )))
}

/// What went wrong with a path, and what to do.
pub(crate) fn failed(path: &Path, what: &str, error: &io::Error) -> Problem {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => Problem::new(format!(
            "there is no {path}: look with LS or Glob for what is there"
        )),
        io::ErrorKind::PermissionDenied => Problem::new(format!(
            "{path} may not be {what} by this user: change its permissions with a command (chmod, sudo)"
        )),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Problem::new(format!(
            "{path} cannot be {what}: the disk is full, remove something first"
        )),
        _ => Problem::new(format!("{path} cannot be {what}: {error}")),
    }
}
