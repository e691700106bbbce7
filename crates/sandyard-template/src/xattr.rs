//! Extended attributes: reading, and which ones travel.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
use rustix::io::Errno;

use crate::overlay;

/// Largest attribute value the VFS accepts (XATTR_SIZE_MAX), so one buffer is always enough.
pub(crate) const MAX_VALUE: usize = 65536;
/// Largest list of names the VFS returns (XATTR_LIST_MAX).
const MAX_LIST: usize = 65536;

/// Where a tree comes from decides which attributes are believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// An upper directory: overlayfs wrote its own attributes there, and nobody inside can.
    Upper,
    /// Anything else: overlay attributes in there would be somebody's attempt to play overlayfs.
    Foreign,
}

/// Says whether attribute `name` is copied from a tree of this origin.
///
/// `trusted.*` and host labels (`security.selinux`, …) mean nothing in a sandbox. Of overlayfs' own, only what shapes
/// the merged view travels; the rest (`origin`, `impure`, `nlink`, …) describes this very upper directory.
pub(crate) fn travels(name: &[u8], origin: Origin) -> bool {
    if name.starts_with(overlay::PREFIX) {
        return origin == Origin::Upper
            && (name == overlay::OPAQUE.as_bytes()
                || name == overlay::WHITEOUT.as_bytes()
                || name.starts_with(overlay::ESCAPED_PREFIX));
    }
    name.starts_with(b"user.") || name == b"security.capability" || is_acl(name)
}

/// Says whether the attribute is an access control list, which must be set after the mode.
pub(crate) fn is_acl(name: &[u8]) -> bool {
    matches!(
        name,
        b"system.posix_acl_access" | b"system.posix_acl_default"
    )
}

/// Value of attribute `name`, or `None` when it is not set or the file system has none.
pub(crate) fn get(fd: impl AsFd, name: impl AsRef<OsStr>) -> Result<Option<Vec<u8>>, Errno> {
    let mut value = Vec::new();
    let mut size = 256;
    loop {
        value.clear();
        value.reserve(size);
        match fgetxattr(
            &fd,
            name.as_ref(),
            rustix::buffer::spare_capacity(&mut value),
        ) {
            Ok(_) => return Ok(Some(value)),
            Err(Errno::RANGE) if size < MAX_VALUE => size = MAX_VALUE,
            Err(Errno::NODATA | Errno::OPNOTSUPP) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}

/// Says whether attribute `name` is set.
pub(crate) fn has(fd: impl AsFd, name: &str) -> Result<bool, Errno> {
    Ok(get(fd, name)?.is_some())
}

/// Names of all attributes.
pub(crate) fn list(fd: impl AsFd) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    let mut size = 1024;
    loop {
        names.clear();
        names.reserve(size);
        match flistxattr(&fd, rustix::buffer::spare_capacity(&mut names)) {
            Ok(_) => break,
            Err(Errno::RANGE) if size < MAX_LIST => size = MAX_LIST,
            Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        }
    }
    let split = names.split(|byte| *byte == 0);
    Ok(split
        .filter(|name| !name.is_empty())
        .map(|name| OsString::from_vec(name.to_vec()))
        .collect())
}

/// Sets an attribute; `Ok(false)` when this file system or this user cannot have it and nothing depends on it.
pub(crate) fn set(fd: impl AsFd, name: &OsStr, value: &[u8]) -> Result<bool, Errno> {
    match fsetxattr(fd, name, value, XattrFlags::empty()) {
        Ok(()) => Ok(true),
        // Without these the merged view would be wrong, so they are never given up silently.
        Err(error) if name.as_bytes().starts_with(overlay::PREFIX) => Err(error),
        Err(Errno::OPNOTSUPP | Errno::PERM | Errno::INVAL | Errno::ACCESS) => Ok(false),
        Err(error) => Err(error),
    }
}
