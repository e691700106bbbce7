//! The metadata that clients store with files: extended attributes below one prefix.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::XattrFlags;
use sandyard_wire::routes::METADATA_XATTR_PREFIX as PREFIX;

/// Maximum size of all names, and of one value, in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// The metadata of a path, without following a link at its end.
pub(crate) fn read(path: &Path) -> BTreeMap<String, String> {
    let names = names(|buffer| rustix::fs::llistxattr(path, buffer));
    let mut metadata = BTreeMap::new();
    for name in names {
        let mut value = vec![0; MAX_BYTES];
        if let Ok(length) = rustix::fs::lgetxattr(path, &name, &mut value[..]) {
            let value = String::from_utf8_lossy(&value[..length]).into_owned();
            metadata.insert(name[PREFIX.len()..].to_owned(), value);
        }
    }
    metadata
}

/// Replaces the metadata of an open file.
pub(crate) fn replace(file: &OwnedFd, metadata: &BTreeMap<String, String>) -> io::Result<()> {
    for name in names(|buffer| rustix::fs::flistxattr(file, buffer)) {
        if !metadata.contains_key(&name[PREFIX.len()..]) {
            rustix::fs::fremovexattr(file, &name)?;
        }
    }
    for (key, value) in metadata {
        let name = format!("{PREFIX}{key}");
        rustix::fs::fsetxattr(file, name, value.as_bytes(), XattrFlags::empty())?;
    }
    Ok(())
}

/// Names of attributes that are metadata; none where the file system has no attributes.
fn names(list: impl Fn(&mut [u8]) -> rustix::io::Result<usize>) -> Vec<String> {
    let mut buffer = vec![0; 1024];
    let mut listed = list(&mut buffer);
    if listed == Err(rustix::io::Errno::RANGE) {
        buffer.resize(MAX_BYTES, 0);
        listed = list(&mut buffer);
    }
    buffer.truncate(listed.unwrap_or(0));
    let names = buffer.split(|&byte| byte == 0).map(std::str::from_utf8);
    let prefixed = names.flatten().filter(|name| name.starts_with(PREFIX));
    prefixed.map(str::to_owned).collect()
}
