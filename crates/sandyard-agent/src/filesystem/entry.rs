//! The attributes of one file.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use rustix::fs::{FileType as Kind, RawMode, Stat};
use sandyard_wire::{EntryInfo, FileType, routes};

use crate::path;
use crate::user::Names;

/// Maximum size of all names, and of one value, of a file's metadata, in bytes.
const MAX_XATTR_BYTES: usize = 64 * 1024;

/// Describes the file of a path, without following a link at its end.
pub(crate) fn describe(path: &Path, names: &Names) -> io::Result<EntryInfo> {
    let stat = rustix::fs::lstat(path)?;
    let kind = Kind::from_raw_mode(stat.st_mode);
    let is_symlink = kind == Kind::Symlink;
    Ok(EntryInfo {
        name: path::name(path),
        r#type: match kind {
            Kind::Directory => FileType::Directory,
            Kind::Symlink => FileType::Symlink,
            _ => FileType::File,
        },
        path: path.to_string_lossy().into_owned(),
        size: stat.st_size,
        mode: stat.st_mode & 0o7777,
        permissions: permissions(kind, stat.st_mode),
        owner: names.user(stat.st_uid),
        group: names.group(stat.st_gid),
        modified_time: modified(&stat),
        symlink_target: is_symlink.then(|| target(path)).flatten(),
        metadata: if kind == Kind::RegularFile || kind == Kind::Directory {
            metadata_of(path)
        } else {
            BTreeMap::new()
        },
        // Clients that read this field expect the target's type beside it.
        is_symlink: false,
    })
}

fn modified(stat: &Stat) -> Option<String> {
    let nanoseconds = i32::try_from(stat.st_mtime_nsec).ok()?;
    let time = jiff::Timestamp::new(stat.st_mtime, nanoseconds).ok()?;
    Some(time.to_string())
}

/// The target of a link: the final one if it exists, else the text of the link.
fn target(path: &Path) -> Option<String> {
    let written = rustix::fs::readlink(path, Vec::new()).ok()?;
    let resolved = std::fs::canonicalize(path).ok();
    Some(match resolved {
        Some(resolved) => resolved.to_string_lossy().into_owned(),
        None => written.to_string_lossy().into_owned(),
    })
}

/// Type and permission bits, as in `ls -l`.
fn permissions(kind: Kind, mode: RawMode) -> String {
    let letter = match kind {
        Kind::Directory => 'd',
        Kind::Symlink => 'l',
        Kind::Fifo => 'p',
        Kind::Socket => 's',
        Kind::CharacterDevice => 'c',
        Kind::BlockDevice => 'b',
        _ => '-',
    };
    let mut text = String::from(letter);
    for (shift, special, set, unset) in [
        (6, 0o4000, 's', 'S'),
        (3, 0o2000, 's', 'S'),
        (0, 0o1000, 't', 'T'),
    ] {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (bits & 1 != 0, mode & special != 0) {
            (true, true) => set,
            (false, true) => unset,
            (true, false) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// The metadata that clients stored with a file.
fn metadata_of(path: &Path) -> BTreeMap<String, String> {
    let mut metadata = BTreeMap::new();
    let mut listed = [0u8; 1024];
    let listed = match rustix::fs::llistxattr(path, &mut listed) {
        Ok(length) => listed[..length].to_vec(),
        Err(rustix::io::Errno::RANGE) => {
            let mut listed = vec![0; MAX_XATTR_BYTES];
            let length = rustix::fs::llistxattr(path, &mut listed[..]).unwrap_or(0);
            listed.truncate(length);
            listed
        }
        Err(_) => return metadata,
    };
    for name in listed.split(|&byte| byte == 0) {
        let Ok(name) = std::str::from_utf8(name) else {
            continue;
        };
        let Some(key) = name.strip_prefix(routes::METADATA_XATTR_PREFIX) else {
            continue;
        };
        let mut value = vec![0; MAX_XATTR_BYTES];
        if let Ok(length) = rustix::fs::lgetxattr(path, name, &mut value[..]) {
            let value = String::from_utf8_lossy(&value[..length]).into_owned();
            metadata.insert(key.to_owned(), value);
        }
    }
    metadata
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_read_as_ls_shows_them() {
        for (kind, mode, text) in [
            (Kind::RegularFile, 0o644, "-rw-r--r--"),
            (Kind::Directory, 0o1777, "drwxrwxrwt"),
            (Kind::RegularFile, 0o4755, "-rwsr-xr-x"),
            (Kind::RegularFile, 0o2644, "-rw-r-Sr--"),
            (Kind::Symlink, 0o777, "lrwxrwxrwx"),
        ] {
            assert_eq!(permissions(kind, mode), text);
        }
    }
}
