//! A directory tree whose paths never lead out of it.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, Mode, OFlags, ResolveFlags, Stat, openat, openat2, statat};
use rustix::io::Errno;

use crate::error::{OperationExt, Result};

/// Longest path inside a tree that is copied. Below PATH_MAX, so that one system call reaches everything from the root
/// and no walk needs a descriptor per level: a hostile tree can be thousands of levels deep.
pub(crate) const MAX_PATH_BYTES: usize = 4000;

/// An open directory taken as the root of everything that is looked up in it.
#[derive(Debug)]
pub(crate) struct Tree {
    fd: OwnedFd,
    /// For messages only.
    path: PathBuf,
}

impl Tree {
    /// Opens `path`, which may go through symbolic links and `/proc/self/fd`: it is ours, what is beneath it is not.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = openat(rustix::fs::CWD, path, flags, Mode::empty())
            .operation(|| format!("open directory `{}`", path.display()))?;
        Ok(Self {
            fd,
            path: path.to_owned(),
        })
    }

    /// A directory inside, found as a process with this tree as its root would, as a tree of its own.
    pub(crate) fn subtree(&self, rel: &Path) -> Result<Self> {
        let fd = self
            .open_in_root(rel, OFlags::RDONLY | OFlags::DIRECTORY)
            .operation(|| format!("open directory `{}`", self.show(rel)))?;
        Ok(Self {
            fd,
            path: self.path.join(rel.strip_prefix("/").unwrap_or(rel)),
        })
    }

    /// Path of `rel` for people.
    pub(crate) fn show(&self, rel: &Path) -> String {
        self.path.join(rel).display().to_string()
    }

    /// Opens the directory at `rel`, refusing symbolic links and mount points on the way.
    pub(crate) fn open_dir(&self, rel: &Path) -> Result<OwnedFd, Errno> {
        self.resolve(
            rel,
            OFlags::RDONLY | OFlags::DIRECTORY,
            ResolveFlags::BENEATH
                | ResolveFlags::NO_SYMLINKS
                | ResolveFlags::NO_MAGICLINKS
                | ResolveFlags::NO_XDEV,
        )
    }

    /// Opens `rel` as a process with this tree as its root would: links are followed, and end inside.
    pub(crate) fn open_in_root(&self, rel: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        self.resolve(
            rel,
            flags,
            ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS,
        )
    }

    fn resolve(&self, rel: &Path, flags: OFlags, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
        let rel = if rel.as_os_str().is_empty() {
            Path::new(".")
        } else {
            rel
        };
        loop {
            match openat2(
                &self.fd,
                rel,
                flags | OFlags::CLOEXEC,
                Mode::empty(),
                resolve,
            ) {
                // The kernel gives up when a rename elsewhere races with `..`; trying again is what it asks for.
                Err(Errno::AGAIN | Errno::INTR) => {}
                other => return other,
            }
        }
    }
}

impl AsFd for Tree {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Status of `name` in `dir`, not following it; `None` when there is nothing.
pub(crate) fn stat_entry(dir: impl AsFd, name: &OsStr) -> Result<Option<Stat>, Errno> {
    match statat(dir, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Calls `each` with every name in `dir` but `.` and `..`, without keeping them: a directory may hold millions.
pub(crate) fn for_each_name<E: From<Errno>>(
    dir: impl AsFd,
    mut each: impl FnMut(&OsStr) -> Result<(), E>,
) -> Result<(), E> {
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            each(OsStr::from_bytes(name))?;
        }
    }
    Ok(())
}

/// All names in `dir`, sorted; for directories known to be small.
pub(crate) fn names(dir: impl AsFd) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    for_each_name::<Errno>(dir, |name| {
        names.push(name.to_owned());
        Ok(())
    })?;
    names.sort();
    Ok(names)
}
