//! The target of a new entry: an open directory in the layer, and a name in it.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, chmodat, mkdirat, openat, unlinkat};
use rustix::io::Errno;

use crate::tree::{Tree, stat_entry};

/// An open directory and a name to make in it.
#[derive(Debug)]
pub(crate) struct EntryTarget {
    parent: PathBuf,
    pub(crate) dir: OwnedFd,
    pub(crate) name: OsString,
    /// An entry was removed, so that cached paths may be wrong.
    stale: Cell<bool>,
}

impl EntryTarget {
    pub(crate) fn path(&self) -> PathBuf {
        self.parent.join(&self.name)
    }
}

/// Splits a path of an archive into directory and last component. `..` never leads above the root. `None` for the root
/// itself.
pub(crate) fn split(path: &[u8]) -> Option<(PathBuf, OsString)> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let name = OsStr::from_bytes(parts.pop()?).to_owned();
    let parent = parts.iter().map(|part| OsStr::from_bytes(part)).collect();
    Some((parent, name))
}

/// Opens and makes the parent directories of entries. Caches the last one, since the next entry is usually beside it.
#[derive(Debug)]
pub(crate) struct Parents<'a> {
    root: &'a Tree,
    last: Option<(PathBuf, OwnedFd)>,
}

impl<'a> Parents<'a> {
    pub(crate) fn new(root: &'a Tree) -> Self {
        Self { root, last: None }
    }

    /// The target for `name` in `parent`. Makes missing directories.
    pub(crate) fn open(&mut self, parent: PathBuf, name: OsString) -> Result<EntryTarget, Errno> {
        let dir = match self.last.take() {
            Some((path, dir)) if path == parent => dir,
            _ => self.open_or_make(&parent)?,
        };
        Ok(EntryTarget {
            parent,
            dir,
            name,
            stale: Cell::new(false),
        })
    }

    /// Caches the directory for the next entry.
    pub(crate) fn cache(&mut self, target: EntryTarget) {
        if !target.stale.get() {
            self.last = Some((target.parent, target.dir));
        }
    }

    fn open_or_make(&self, path: &Path) -> Result<OwnedFd, Errno> {
        match self.open_one(path) {
            Err(Errno::NOENT) => {}
            other => return other,
        }
        // The longest part of it that exists, by halving: a path can have thousands of components.
        let parts: Vec<&OsStr> = path.iter().collect();
        let prefix = |count: usize| parts[..count].iter().collect::<PathBuf>();
        let (mut there, mut missing) = (0, parts.len());
        while missing - there > 1 {
            let middle = there.midpoint(missing);
            match self.open_one(&prefix(middle)) {
                Ok(_) => there = middle,
                Err(Errno::NOENT) => missing = middle,
                Err(error) => return Err(error),
            }
        }
        let mut dir = self.open_one(&prefix(there))?;
        for part in &parts[there..] {
            // Fails at a dangling link.
            mkdirat(&dir, *part, Mode::RWXU)?;
            chmodat(&dir, *part, Mode::from_raw_mode(0o755), AtFlags::empty())?;
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            dir = openat(&dir, *part, flags, Mode::empty())?;
        }
        Ok(dir)
    }

    fn open_one(&self, path: &Path) -> Result<OwnedFd, Errno> {
        self.root
            .open_in_root(path, OFlags::PATH | OFlags::DIRECTORY)
    }
}

/// Makes the directory, or uses an existing one. Removes anything else of that name.
pub(crate) fn make_directory(target: &EntryTarget) -> Result<(), Errno> {
    match mkdirat(&target.dir, &target.name, Mode::RWXU) {
        Err(Errno::EXIST) => {}
        other => return other,
    }
    let stat = stat_entry(&target.dir, &target.name)?.ok_or(Errno::NOENT)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        return Ok(());
    }
    clear_name(target)?;
    mkdirat(&target.dir, &target.name, Mode::RWXU)
}

/// Removes the entry of that name; a directory only if it is empty, as tar does.
pub(crate) fn clear_name(target: &EntryTarget) -> Result<(), Errno> {
    let removed = match unlinkat(&target.dir, &target.name, AtFlags::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR) => unlinkat(&target.dir, &target.name, AtFlags::REMOVEDIR),
        other => other,
    };
    target.stale.set(true);
    removed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(path: &str) -> Option<String> {
        let (parent, name) = split(path.as_bytes())?;
        Some(parent.join(name).display().to_string())
    }

    #[test]
    fn names_stay_below_the_root() {
        assert_eq!(joined("./usr//bin/./sh").as_deref(), Some("usr/bin/sh"));
        assert_eq!(joined("/etc/passwd").as_deref(), Some("etc/passwd"));
        assert_eq!(joined("../../etc/passwd").as_deref(), Some("etc/passwd"));
        assert_eq!(joined("a/../../../b/..//c/").as_deref(), Some("c"));
        for root in ["", "/", ".", "./", "..", "a/.."] {
            assert_eq!(joined(root), None, "{root}");
        }
    }
}
