//! Removes command logs.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sandyard_core::SandboxId;

use super::files::{FolderLock, segments};

/// Lists the sandboxes that have a log folder.
pub(super) fn folders(root: &Path) -> io::Result<Vec<SandboxId>> {
    let entries = match std::fs::read_dir(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut ids = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        ids.extend(name.to_str().and_then(|name| name.parse().ok()));
    }
    Ok(ids)
}

/// Removes a log folder.
pub(super) fn remove(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Removes the files that were last written longest ago, of all sandboxes, until the rest has at most `max_bytes`.
///
/// The newest file of each log is removed last, because it has the line numbers and the running commands.
pub(super) fn keep_within(root: &Path, max_bytes: u64) -> io::Result<()> {
    let mut all: Vec<(bool, SystemTime, u64, PathBuf, PathBuf)> = Vec::new();
    for id in folders(root)? {
        let folder = root.join(id.as_str());
        let found = segments(&folder)?;
        for segment in &found {
            let path = segment.path(&folder);
            let is_newest = found.last() == Some(segment);
            // Another server may have removed it.
            let Ok(metadata) = path.metadata() else {
                continue;
            };
            let modified = metadata.modified()?;
            all.push((is_newest, modified, metadata.len(), folder.clone(), path));
        }
    }
    let mut total: u64 = all.iter().map(|(_, _, size, ..)| size).sum();
    all.sort_unstable();
    for (_, _, size, folder, path) in all {
        if total <= max_bytes {
            break;
        }
        // The lock tells the next writer that the folder has changed.
        FolderLock::open(&folder)?.hold("retention", |_| match std::fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        })?;
        total -= size;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::files::{Bounds, LogFiles};
    use super::super::record::{Lines, Record};
    use super::*;

    #[test]
    fn the_oldest_files_of_all_sandboxes_are_removed_first() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, count: usize| {
            let bounds = Bounds {
                segment: 1000,
                total: u64::MAX,
            };
            let mut files = LogFiles::open(&root.path().join(name), bounds).unwrap();
            for _ in 0..count {
                let text = [b'x'; 499].iter().copied().chain([b'\n']).collect();
                let lines = Lines {
                    count: 1,
                    text,
                    ..Lines::default()
                };
                files.append(name, &mut [Record::Lines(lines)]).unwrap();
            }
        };
        write("old", 10);
        let old = std::fs::read_dir(root.path().join("old")).unwrap();
        let long_ago = SystemTime::now() - std::time::Duration::from_secs(3600);
        for file in old {
            let file = std::fs::File::options()
                .append(true)
                .open(file.unwrap().path())
                .unwrap();
            file.set_modified(long_ago).unwrap();
        }
        write("new", 10);
        keep_within(root.path(), 7000).unwrap();
        let count = |name: &str| segments(&root.path().join(name)).unwrap().len();
        assert_eq!(count("new"), 5);
        assert!((1..5).contains(&count("old")), "{}", count("old"));
        // The log of one that lost its last file goes on.
        keep_within(root.path(), 0).unwrap();
        assert_eq!(count("old") + count("new"), 0);
        write("new", 1);
        assert_eq!(count("new"), 1);
        assert_eq!(folders(root.path()).unwrap().len(), 2);
        remove(&root.path().join("old")).unwrap();
        assert_eq!(folders(root.path()).unwrap().len(), 1);
    }
}
