//! Walks one upper directory beside the layers below it.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType as Kind, Mode, OFlags, Stat, openat};
use rustix::io::Errno;

use super::{Change, ChangeKind, Diff, DiffOptions, FileType};
use crate::error::{OperationExt, Result};
use crate::merged::{MergedDir, MergedEntry};
use crate::overlay;
use crate::tree::{Tree, for_each_name, stat_entry};
use crate::xattr::{self, Origin};

/// Changes found so far, within bounds.
#[derive(Debug)]
pub(super) struct Changes {
    options: DiffOptions,
    entry_count: usize,
    diff: Diff,
}

impl Changes {
    pub(super) fn new(options: DiffOptions) -> Self {
        Self {
            options,
            entry_count: 0,
            diff: Diff::default(),
        }
    }

    pub(super) fn finish(self) -> Diff {
        self.diff
    }

    fn add(&mut self, path: PathBuf, kind: ChangeKind, stat: &Stat) {
        if self.diff.changes.len() >= self.options.max_changes {
            self.diff.truncated = true;
            return;
        }
        let (file_type, sized) = match Kind::from_raw_mode(stat.st_mode) {
            Kind::RegularFile => (FileType::File, true),
            Kind::Directory => (FileType::Directory, false),
            Kind::Symlink => (FileType::Symlink, true),
            _ => (FileType::Other, false),
        };
        self.diff.changes.push(Change {
            path,
            kind,
            file_type,
            size_bytes: if sized {
                u64::try_from(stat.st_size).unwrap_or(0)
            } else {
                0
            },
        });
    }

    /// Says whether to go on, counting one more entry.
    fn count_entry(&mut self) -> bool {
        self.entry_count += 1;
        if self.entry_count > self.options.max_entries {
            self.diff.truncated = true;
        }
        !self.diff.truncated
    }
}

/// A directory still to visit.
struct Pending {
    name: OsString,
    /// Layers that had a directory of this name.
    layers: Vec<usize>,
    /// Nothing of the layers shows through: it, or a directory above it, is opaque.
    hidden: bool,
}

/// Adds the changes in `upper` over `layers`, for the part mounted at `target`.
pub(super) fn walk(
    upper: &Tree,
    layers: &[Tree],
    target: &Path,
    changes: &mut Changes,
) -> Result<()> {
    let mut walker = Walker {
        upper,
        layers,
        target,
        changes,
    };
    let mut rel = PathBuf::new();
    let mut frames = vec![vec![Pending {
        name: OsString::new(),
        layers: (0..layers.len()).collect(),
        hidden: false,
    }]];
    while let Some(frame) = frames.last_mut() {
        if walker.changes.diff.truncated {
            break;
        }
        if let Some(pending) = frame.pop() {
            rel.push(&pending.name);
            let below = walker
                .enter(&rel, &pending)
                .operation(|| format!("compare `{}`", upper.show(&rel)))?;
            frames.push(below);
        } else {
            frames.pop();
            rel.pop();
        }
    }
    Ok(())
}

struct Walker<'a> {
    upper: &'a Tree,
    layers: &'a [Tree],
    target: &'a Path,
    changes: &'a mut Changes,
}

impl Walker<'_> {
    fn enter(&mut self, rel: &Path, pending: &Pending) -> Result<Vec<Pending>, Errno> {
        let mut below = Vec::new();
        let dir = match self.upper.open_dir(rel) {
            Ok(dir) => dir,
            // The sandbox may be running: what went away is no change any more.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(below),
            Err(error) => return Err(error),
        };
        let lower = MergedDir::open(self.layers, &pending.layers, rel)?;
        let hidden = pending.hidden || overlay::is_opaque(&dir)?;
        let mut seen = HashSet::new();
        for_each_name::<Errno>(&dir, |name| {
            if !self.changes.count_entry() {
                return Ok(());
            }
            if hidden {
                seen.insert(name.to_owned());
            }
            if let Some(child) = self.entry(&dir, &lower, rel, name, hidden)? {
                below.push(child);
            }
            Ok(())
        })?;
        if hidden {
            self.deleted(&lower, rel, &seen)?;
        }
        Ok(below)
    }

    fn entry(
        &mut self,
        dir: &OwnedFd,
        lower: &MergedDir,
        rel: &Path,
        name: &OsStr,
        hidden: bool,
    ) -> Result<Option<Pending>, Errno> {
        let Some(stat) = stat_entry(dir, name)? else {
            return Ok(None);
        };
        let before = lower.lookup(name)?;
        let path = self.target.join(rel).join(name);
        if overlay::is_whiteout(dir, name, &stat)? {
            if let Some(before) = before {
                self.changes.add(path, ChangeKind::Deleted, &before.stat);
            }
            return Ok(None);
        }
        match &before {
            None => self.changes.add(path, ChangeKind::Added, &stat),
            Some(before) => {
                if self.differs(dir, lower, name, &stat, before)? {
                    self.changes.add(path, ChangeKind::Modified, &stat);
                }
            }
        }
        if Kind::from_raw_mode(stat.st_mode) != Kind::Directory {
            return Ok(None);
        }
        Ok(Some(Pending {
            name: name.to_owned(),
            layers: before.map(|before| before.layers).unwrap_or_default(),
            hidden,
        }))
    }

    /// What the layers have in an opaque directory and the sandbox does not.
    fn deleted(
        &mut self,
        lower: &MergedDir,
        rel: &Path,
        seen: &HashSet<OsString>,
    ) -> Result<(), Errno> {
        for name in lower.names()? {
            if seen.contains(&name) {
                continue;
            }
            if !self.changes.count_entry() {
                break;
            }
            if let Some(before) = lower.lookup(&name)? {
                let path = self.target.join(rel).join(&name);
                self.changes.add(path, ChangeKind::Deleted, &before.stat);
            }
        }
        Ok(())
    }

    /// Overlayfs copies a file up when it is opened for writing, and directories when anything in them changes: being
    /// in the upper directory alone is no change.
    fn differs(
        &self,
        dir: &OwnedFd,
        lower: &MergedDir,
        name: &OsStr,
        now: &Stat,
        before: &MergedEntry,
    ) -> Result<bool, Errno> {
        let was = &before.stat;
        let owners = (now.st_uid, now.st_gid) != (was.st_uid, was.st_gid);
        if now.st_mode != was.st_mode || (self.changes.options.compare_owners && owners) {
            return Ok(true);
        }
        let kind = Kind::from_raw_mode(now.st_mode);
        let content = (now.st_size, now.st_mtime, now.st_mtime_nsec, now.st_rdev)
            != (was.st_size, was.st_mtime, was.st_mtime_nsec, was.st_rdev);
        // A directory's time and size change with what is in it, which is reported separately.
        if kind != Kind::Directory && content {
            return Ok(true);
        }
        if !matches!(kind, Kind::Directory | Kind::RegularFile) {
            return Ok(false);
        }
        let Some(holder) = lower.holder(before) else {
            return Ok(false);
        };
        Ok(attributes(dir, name)? != attributes(holder, name)?)
    }
}

/// Name and value.
type Attribute = (OsString, Option<Vec<u8>>);

/// Extended attributes a sandbox can see, sorted; none when it cannot be opened by us.
fn attributes(dir: &OwnedFd, name: &OsStr) -> Result<Vec<Attribute>, Errno> {
    use std::os::unix::ffi::OsStrExt;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(dir, name, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::ACCESS | Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for name in xattr::list(&file)? {
        if xattr::travels(name.as_bytes(), Origin::Foreign) {
            let value = xattr::get(&file, &name)?;
            found.push((name, value));
        }
    }
    found.sort();
    Ok(found)
}
