//! The attributes of one file.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use rustix::fs::{FileType as Kind, RawMode, Stat};
use sandyard_wire::{EntryInfo, FileType};

use crate::user::Names;
use crate::{metadata, path};

/// Describes the file of a path. A symbolic link has the type, size and mode of its target, and no type if that is missing.
pub(crate) fn describe(path: &Path, names: &Names) -> io::Result<EntryInfo> {
    let stat = rustix::fs::lstat(path)?;
    let kind = Kind::from_raw_mode(stat.st_mode);
    let is_symlink = kind == Kind::Symlink;
    let followed = if is_symlink {
        rustix::fs::stat(path).ok()
    } else {
        Some(stat)
    };
    Ok(EntryInfo {
        name: path::name(path),
        r#type: followed.map_or(FileType::Unspecified, |stat| file_type(&stat)),
        path: path.to_string_lossy().into_owned(),
        size: followed.unwrap_or(stat).st_size,
        mode: followed.map_or(0, |stat| stat.st_mode & 0o7777),
        permissions: permissions(kind, stat.st_mode),
        owner: names.user(stat.st_uid),
        group: names.group(stat.st_gid),
        modified_time: modified(&stat),
        symlink_target: is_symlink.then(|| target(path)).flatten(),
        metadata: if kind == Kind::RegularFile || kind == Kind::Directory {
            metadata::read(path)
        } else {
            BTreeMap::new()
        },
        // The newest clients of E2B would show a link where others show its target's type.
        is_symlink: false,
    })
}

fn file_type(stat: &Stat) -> FileType {
    match Kind::from_raw_mode(stat.st_mode) {
        Kind::Directory => FileType::Directory,
        _ => FileType::File,
    }
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

/// Type and permission bits in the notation of Go's `os.FileMode`, which E2B's clients show: letters of what the file is
/// (`-` for a plain one), then nine permissions.
fn permissions(kind: Kind, mode: RawMode) -> String {
    let mut text = String::from(match kind {
        Kind::Directory => "d",
        Kind::Symlink => "L",
        Kind::BlockDevice | Kind::CharacterDevice => "D",
        Kind::Fifo => "p",
        Kind::Socket => "S",
        _ => "",
    });
    for (applies, letters) in [
        (mode & 0o4000 != 0, "u"),
        (mode & 0o2000 != 0, "g"),
        (kind == Kind::CharacterDevice, "c"),
        (mode & 0o1000 != 0, "t"),
    ] {
        text.push_str(if applies { letters } else { "" });
    }
    if text.is_empty() {
        text.push('-');
    }
    for (position, letter) in "rwxrwxrwx".chars().enumerate() {
        let is_set = mode & (0o400 >> position) != 0;
        text.push(if is_set { letter } else { '-' });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_written_as_go_writes_them() {
        for (kind, mode, text) in [
            (Kind::RegularFile, 0o644, "-rw-r--r--"),
            (Kind::Directory, 0o1777, "dtrwxrwxrwx"),
            (Kind::RegularFile, 0o4755, "urwxr-xr-x"),
            (Kind::RegularFile, 0o2644, "grw-r--r--"),
            (Kind::Symlink, 0o777, "Lrwxrwxrwx"),
            (Kind::CharacterDevice, 0o666, "Dcrw-rw-rw-"),
            (Kind::BlockDevice, 0o660, "Drw-rw----"),
            (Kind::Fifo, 0o600, "prw-------"),
            (Kind::Socket, 0o755, "Srwxr-xr-x"),
        ] {
            assert_eq!(permissions(kind, mode), text);
        }
    }
}
