//! Free space on the disk of a SQLite file, and a reserve that only the database can use.
//!
//! The reserve is blocks allocated ahead for the write-ahead log and for the database file, without a change of their sizes.
//! SQLite writes every commit into the log and uses it from its beginning again after a checkpoint, so with a log that owns
//! its blocks, deletes and status changes work while the disk is full. A separate file that is deleted on demand would be worse: the
//! program that fills the disk would take its blocks first.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, statvfs};

/// Bytes reserved for the log, and as many for the database file.
const RESERVE_BYTES: u64 = 16 << 20;
/// On a small disk each of the two is at most this part of it.
///
/// From about 40 MB on the log still has room for the thousand pages after which SQLite makes a checkpoint, so that its blocks are
/// used again.
const MAX_PART: u64 = 8;
/// With less free space than this, an I/O error counts as a full disk: file systems keep a few blocks for themselves.
const FULL_BELOW_BYTES: u64 = 1 << 20;

/// Bytes that programs can use on the file system of a path.
pub(crate) fn free_bytes(path: &Path) -> io::Result<u64> {
    let space = statvfs(path)?;
    Ok(space.f_bavail * space.f_frsize)
}

/// Says whether the file system of a path is full.
pub(crate) fn is_full(path: &Path) -> bool {
    free_bytes(path).is_ok_and(|free| free < FULL_BELOW_BYTES)
}

/// Allocates blocks for the log of a database. On a full disk there is no reserve.
pub(crate) fn reserve_log(database: &Path) {
    let mut name = OsString::from(database);
    name.push("-wal");
    let log = PathBuf::from(name);
    let reserved = OpenOptions::new()
        .write(true)
        .open(&log)
        .and_then(|file| allocate(&file, &log, 0));
    if let Err(error) = reserved {
        tracing::debug!(%error, "Failed to reserve disk space for the log of the database");
    }
}

/// Allocates blocks after the end of the database file. Call it before SQLite opens the file: closing any other descriptor of
/// the file releases the locks of SQLite in this process.
pub(crate) fn reserve_database(file: &File, database: &Path) {
    let reserved = file
        .metadata()
        .and_then(|metadata| allocate(file, database, metadata.len()));
    if let Err(error) = reserved {
        tracing::debug!(%error, "Failed to reserve disk space for the database file");
    }
}

fn allocate(file: &File, path: &Path, offset: u64) -> io::Result<()> {
    let space = statvfs(path)?;
    let part = space.f_blocks * space.f_frsize / MAX_PART;
    let length = RESERVE_BYTES.min(part);
    fallocate(file, FallocateFlags::KEEP_SIZE, offset, length)?;
    Ok(())
}
