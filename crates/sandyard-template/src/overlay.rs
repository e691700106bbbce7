//! What overlayfs writes into upper directories, in the form it has with the mount option `userxattr`.
//!
//! Deleted names are *whiteouts*: character devices 0/0, or (kernel 6.7 and later, in lower layers only) empty files with
//! the attribute `user.overlay.whiteout` inside a directory whose `user.overlay.opaque` is `x`. A directory that hides
//! the ones below it is *opaque*: `user.overlay.opaque` is `y`. Redirects and metadata-only copies do not exist with
//! `userxattr`, the kernel disables both. See Documentation/filesystems/overlayfs.rst.

use std::ffi::OsStr;
use std::os::fd::AsFd;

use rustix::fs::{FileType, Mode, OFlags, Stat, mknodat, openat};
use rustix::io::Errno;

use crate::xattr;

/// Prefix of all that overlayfs keeps for itself.
pub(crate) const PREFIX: &[u8] = b"user.overlay.";
/// How the kernel stores an attribute that a sandbox itself named `user.overlay.…`: with the prefix doubled.
pub(crate) const ESCAPED_PREFIX: &[u8] = b"user.overlay.overlay.";
/// Marks opaque directories (`y`) and directories with attribute whiteouts (`x`).
pub(crate) const OPAQUE: &str = "user.overlay.opaque";
/// Marks an empty file as whiteout.
pub(crate) const WHITEOUT: &str = "user.overlay.whiteout";

/// Says whether this is a device-style whiteout.
pub(crate) fn is_whiteout_node(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0
}

/// Says whether `name` in `dir` is a whiteout of either style.
pub(crate) fn is_whiteout(dir: impl AsFd, name: &OsStr, stat: &Stat) -> Result<bool, Errno> {
    if is_whiteout_node(stat) {
        return Ok(true);
    }
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_size != 0 {
        return Ok(false);
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match openat(dir, name, flags, Mode::empty()) {
        Ok(file) => xattr::has(&file, WHITEOUT),
        // An empty file nobody may read is no whiteout: the kernel makes those readable to itself.
        Err(Errno::ACCESS | Errno::NOENT | Errno::LOOP) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Says whether the open directory hides what is below it.
pub(crate) fn is_opaque(dir: impl AsFd) -> Result<bool, Errno> {
    Ok(xattr::get(dir, OPAQUE)?.is_some_and(|value| value == b"y"))
}

/// Makes a whiteout; the kernel lets everyone make this one device.
pub(crate) fn make_whiteout(dir: impl AsFd, name: &OsStr) -> Result<(), Errno> {
    mknodat(dir, name, FileType::CharacterDevice, Mode::empty(), 0)
}
