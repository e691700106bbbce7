//! Measures a folder whose content may be hostile.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, chmodat, openat, statat};

/// Deeper nesting is taken for an attack.
const MAX_DEPTH: usize = 500;

/// Bytes on disk below `folder`. Folders without permissions for their owner are opened all the same. Too deep nesting counts as
/// `u64::MAX`.
pub(super) fn folder_bytes(folder: &Path) -> u64 {
    match rustix::fs::open(folder, OPEN, Mode::empty()) {
        Ok(folder) => bytes_below(folder, 0),
        Err(_) => 0,
    }
}

const OPEN: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

fn bytes_below(folder: OwnedFd, depth: usize) -> u64 {
    if depth > MAX_DEPTH {
        return u64::MAX;
    }
    let Ok(entries) = Dir::read_from(&folder) else {
        return 0;
    };
    let mut sum = 0_u64;
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let Ok(found) = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        sum = sum.saturating_add(found.st_blocks as u64 * 512);
        if FileType::from_raw_mode(found.st_mode) == FileType::Directory
            && let Some(below) = open_below(&folder, name, Mode::from_raw_mode(found.st_mode))
        {
            sum = sum.saturating_add(bytes_below(below, depth + 1));
        }
    }
    sum
}

fn open_below(folder: impl AsFd, name: &std::ffi::CStr, mode: Mode) -> Option<OwnedFd> {
    let open = || openat(&folder, name, OPEN, Mode::empty());
    match open() {
        Err(rustix::io::Errno::ACCESS) => {
            // We own it: grant permission for a moment, then restore the mode.
            chmodat(
                &folder,
                name,
                mode | Mode::RUSR | Mode::XUSR,
                AtFlags::empty(),
            )
            .ok()?;
            let opened = open();
            let _ = chmodat(&folder, name, mode, AtFlags::empty());
            opened.ok()
        }
        other => other.ok(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_without_rights_is_counted_and_left_as_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let hidden = folder.path().join("hidden");
        fs::create_dir(&hidden).expect("make");
        fs::write(hidden.join("file"), vec![1; 1 << 20]).expect("write");
        fs::set_permissions(&hidden, fs::Permissions::from_mode(0o000)).expect("close");
        assert!(folder_bytes(folder.path()) >= 1 << 20);
        assert_eq!(
            fs::metadata(&hidden).expect("mode").permissions().mode() & 0o777,
            0
        );
        fs::set_permissions(&hidden, fs::Permissions::from_mode(0o700)).expect("open");
    }

    #[test]
    fn a_folder_nested_beyond_reason_counts_as_endless() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut at = rustix::fs::open(folder.path(), OPEN, Mode::empty()).expect("open");
        for _ in 0..MAX_DEPTH + 10 {
            rustix::fs::mkdirat(&at, "d", Mode::RWXU).expect("make");
            at = openat(&at, "d", OPEN, Mode::empty()).expect("open");
        }
        assert_eq!(folder_bytes(folder.path()), u64::MAX);
    }
}
