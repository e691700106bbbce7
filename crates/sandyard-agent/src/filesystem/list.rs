//! Listing a directory, down to some depth.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use sandyard_wire::filesystem::ListDirResponse;
use sandyard_wire::{Code, ConnectError, EntryInfo, FileType};

use super::{describe, from_io};
use crate::fs;
use crate::user::Names;

/// Maximum number of entries in one answer.
const MAX_ENTRIES: usize = 100_000;

/// Entries that are read before other tasks run.
const ENTRIES_PER_TURN: usize = 256;

/// Lists a directory, each directory before its content.
pub(super) async fn list(
    root: &Path,
    depth: u32,
    names: &Names,
) -> Result<ListDirResponse, ConnectError> {
    let is_directory = rustix::fs::stat(root)
        .map(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir())
        .map_err(|error| from_io(root, &error.into()))?;
    if !is_directory {
        return Err(ConnectError::invalid_argument(format!(
            "path '{}' is not a directory",
            root.display()
        )));
    }
    let mut entries: Vec<EntryInfo> = Vec::new();
    let mut waiting = vec![(root.to_owned(), depth)];
    while let Some((path, depth)) = waiting.pop() {
        if path != root {
            // It may have been removed since it was found.
            let Ok(entry) = describe(&path, names) else {
                continue;
            };
            // A link to a directory is not entered: it may lead back up.
            let is_directory =
                entry.r#type == FileType::Directory && entry.symlink_target.is_none();
            push(&mut entries, entry)?;
            if entries.len().is_multiple_of(ENTRIES_PER_TURN) {
                tokio::task::yield_now().await;
            }
            if !is_directory || depth == 0 {
                continue;
            }
        }
        let mut children = match children(&path) {
            Ok(children) => children,
            Err(error) if path == root => return Err(from_io(root, &error)),
            Err(_) => continue,
        };
        if entries.len() + waiting.len() + children.len() > MAX_ENTRIES {
            return Err(too_many());
        }
        // The last one is processed first.
        children.sort_unstable_by(|a, b| b.cmp(a));
        waiting.extend(children.into_iter().map(|child| (child, depth - 1)));
    }
    Ok(ListDirResponse { entries })
}

fn push(entries: &mut Vec<EntryInfo>, entry: EntryInfo) -> Result<(), ConnectError> {
    if entries.len() >= MAX_ENTRIES {
        return Err(too_many());
    }
    entries.push(entry);
    Ok(())
}

fn too_many() -> ConnectError {
    ConnectError::new(
        Code::ResourceExhausted,
        format!("more than {MAX_ENTRIES} entries, list a part of it"),
    )
}

/// Paths of a directory's direct entries; at most a few more than the limit.
pub(super) fn children(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let dir = fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
    let mut children = Vec::new();
    for entry in rustix::fs::Dir::read_from(&dir)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            children.push(path.join(OsStr::from_bytes(name)));
        }
        if children.len() > MAX_ENTRIES {
            break;
        }
    }
    Ok(children)
}
