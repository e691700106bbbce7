//! Unpacks an archive into a layer so that nothing in it can reach out.
//!
//! Names are taken apart here and never given to the kernel whole; directories on the way are opened as a process with
//! the layer as its root would see them (`openat2` with `RESOLVE_IN_ROOT`), so links lead where they will lead inside
//! the sandbox and nowhere else; the last component is made anew, never followed and never opened if it exists.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, chmodat, fchmod, ftruncate, linkat, mknodat, openat, symlinkat,
};
use rustix::io::{Errno, pwrite};

use super::header::Extent;
use super::tar::{Archive, Entry, EntryKind};
use crate::budget::Budget;
use crate::copy::{Owners, chown_fd, chown_name, set_mtime, set_mtime_name};
use crate::error::{Result, TemplateError};
use crate::overlay;
use crate::target::{EntryTarget, Parents, clear_name, make_directory, split};
use crate::tree::{Tree, stat_entry};
use crate::xattr::{self, Origin};

const BUFFER: usize = 256 << 10;
/// Prefix of names of deleted files in layers of images.
const DELETED: &[u8] = b".wh.";
/// After the prefix: all that the layers below have in this directory is deleted.
const OPAQUE_DIRECTORY: &[u8] = b".wh..opq";

/// What an archive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Files as they are.
    Files,
    /// A layer of an image: names with a prefix stand for what is deleted from the layers below.
    ImageLayer,
}

/// Unpacks all of `archive` into the empty directory `root`.
pub(super) fn unpack<R: Read>(
    archive: &mut Archive<R>,
    content: Content,
    root: &Tree,
    owners: Owners,
    budget: &mut Budget<'_>,
) -> Result<()> {
    let mut unpacker = Unpacker {
        root,
        owners,
        budget,
        deleted: (content == Content::ImageLayer).then(HashSet::new),
        directories: Vec::new(),
        parents: Parents::new(root),
        buffer: vec![0; BUFFER],
    };
    while let Some(entry) = archive.next()? {
        unpacker.entry(entry, archive)?;
    }
    unpacker.finish_directories()
}

struct Unpacker<'a, 'b> {
    root: &'a Tree,
    owners: Owners,
    budget: &'a mut Budget<'b>,
    /// In a layer of an image: what it deletes from the layers below.
    deleted: Option<HashSet<PathBuf>>,
    /// Directories get their modes and times last: a mode could keep us out, and each new entry changes the time.
    directories: Vec<(PathBuf, Entry)>,
    parents: Parents<'a>,
    buffer: Vec<u8>,
}

impl Unpacker<'_, '_> {
    fn entry<R: Read>(&mut self, entry: Entry, archive: &mut Archive<R>) -> Result<()> {
        self.budget.entry()?;
        match entry.kind {
            EntryKind::Device => self.budget.counts.devices += 1,
            EntryKind::Unknown => self.budget.counts.unknown += 1,
            kind => match split(&entry.path) {
                Some((parent, name)) => {
                    if self.deletion(&parent, &name, &entry)? {
                        return Ok(());
                    }
                    let target = self
                        .parents
                        .open(parent, name)
                        .map_err(|error| failed(&entry, error))?;
                    self.write_entry(&target, entry, archive)?;
                    self.parents.cache(target);
                }
                // The archive's own root, `./`, only has attributes.
                None if kind == EntryKind::Directory => {
                    self.remember_directory(PathBuf::new(), entry)?
                }
                None => return Err(TemplateError::archive("its root is not a directory")),
            },
        }
        Ok(())
    }

    fn write_entry<R: Read>(
        &mut self,
        target: &EntryTarget,
        entry: Entry,
        archive: &mut Archive<R>,
    ) -> Result<()> {
        if entry.kind == EntryKind::Directory {
            make_directory(target).map_err(|error| failed(&entry, error))?;
            let path = target.path();
            if self
                .deleted
                .as_mut()
                .is_some_and(|deleted| deleted.remove(&path))
            {
                self.make_opaque(&path)
                    .map_err(|error| failed(&entry, error))?;
            }
            return self.remember_directory(path, entry);
        }
        if entry.kind == EntryKind::HardLink {
            return self.hard_link(target, &entry);
        }
        clear_name(target).map_err(|error| failed(&entry, error))?;
        match entry.kind {
            EntryKind::File => self.file(target, &entry, archive),
            EntryKind::Symlink => {
                symlinkat(OsStr::from_bytes(&entry.link), &target.dir, &target.name)
                    .and_then(|()| self.finish_name(target, &entry))
                    .map_err(|error| failed(&entry, error))
            }
            _ => mknodat(
                &target.dir,
                &target.name,
                FileType::Fifo,
                Mode::RUSR | Mode::WUSR,
                0,
            )
            .and_then(|()| self.finish_name(target, &entry))
            // After the owner, and apart from making it, for the umask.
            .and_then(|()| chmodat(&target.dir, &target.name, mode(&entry), AtFlags::empty()))
            .map_err(|error| failed(&entry, error)),
        }
    }

    /// Handles the name of a deletion in a layer of an image. Says whether it was one.
    ///
    /// Deletions only concern the layers below: what this layer has under such a name stays.
    fn deletion(&mut self, parent: &Path, name: &OsStr, entry: &Entry) -> Result<bool> {
        let Some(deleted) = &mut self.deleted else {
            return Ok(false);
        };
        let Some(name) = name.as_bytes().strip_prefix(DELETED) else {
            return Ok(false);
        };
        let failed = |error| failed(entry, error);
        match name {
            b"" | b"." | b".." => return Err(TemplateError::archive("a deletion names no file")),
            OPAQUE_DIRECTORY => {
                self.parents
                    .open(parent.to_owned(), OsStr::from_bytes(name).to_owned())
                    .map_err(failed)?;
                self.make_opaque(parent).map_err(failed)?;
            }
            // Notes of AUFS, where the format comes from.
            name if name.starts_with(DELETED) => {}
            name => {
                let target = self
                    .parents
                    .open(parent.to_owned(), OsStr::from_bytes(name).to_owned())
                    .map_err(failed)?;
                match stat_entry(&target.dir, &target.name).map_err(failed)? {
                    None => {
                        self.budget.remember(target.path().as_os_str().len() + 64)?;
                        overlay::make_whiteout(&target.dir, &target.name).map_err(failed)?;
                        deleted.insert(target.path());
                    }
                    Some(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                        self.make_opaque(&target.path()).map_err(failed)?;
                    }
                    Some(_) => {}
                }
                self.parents.cache(target);
            }
        }
        Ok(true)
    }

    /// Hides what the layers below have in this directory.
    fn make_opaque(&self, path: &Path) -> Result<(), Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let dir = self.root.open_in_root(path, flags)?;
        xattr::set(&dir, OsStr::new(overlay::OPAQUE), b"y").map(drop)
    }

    fn file<R: Read>(
        &mut self,
        target: &EntryTarget,
        entry: &Entry,
        archive: &mut Archive<R>,
    ) -> Result<()> {
        // Claimed sizes count before anything is written, holes included: they are what a sandbox would read.
        self.budget.bytes(entry.size)?;
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&target.dir, &target.name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| failed(entry, error))?;
        let whole = [Extent {
            offset: 0,
            length: entry.size,
        }];
        for extent in entry.sparse.as_deref().unwrap_or(&whole) {
            self.extent(&file, *extent, entry, archive)?;
        }
        if entry.sparse.is_some() {
            ftruncate(&file, entry.size).map_err(|error| failed(entry, error))?;
        }
        self.finish_fd(&file, entry)
            .map_err(|error| failed(entry, error))
    }

    fn extent<R: Read>(
        &mut self,
        file: &OwnedFd,
        extent: Extent,
        entry: &Entry,
        archive: &mut Archive<R>,
    ) -> Result<()> {
        let mut done = 0;
        while done < extent.length {
            let want = self
                .buffer
                .len()
                .min(usize::try_from(extent.length - done).unwrap_or(usize::MAX));
            let count = archive.read_data(&mut self.buffer[..want])?;
            if count == 0 {
                return Err(TemplateError::archive("a file has less data than it says"));
            }
            let mut written = 0;
            while written < count {
                let at = extent.offset + done + written as u64;
                written += pwrite(file, &self.buffer[written..count], at)
                    .map_err(|error| failed(entry, error))?;
            }
            done += count as u64;
        }
        Ok(())
    }

    fn hard_link(&mut self, target: &EntryTarget, entry: &Entry) -> Result<()> {
        let missing = || {
            TemplateError::archive(format!(
                "hard link `{}` leads to `{}`, which is not a file of the archive",
                show(&entry.path),
                show(&entry.link)
            ))
        };
        let (parent, name) = split(&entry.link).ok_or_else(missing)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let dir = self
            .root
            .open_in_root(&parent, flags)
            .map_err(|_| missing())?;
        let original = stat_entry(&dir, &name).ok().flatten().ok_or_else(missing)?;
        if FileType::from_raw_mode(original.st_mode) == FileType::Directory {
            return Err(missing());
        }
        // A name linked to itself stays what it is.
        let existing =
            stat_entry(&target.dir, &target.name).map_err(|error| failed(entry, error))?;
        if existing
            .is_some_and(|stat| (stat.st_dev, stat.st_ino) == (original.st_dev, original.st_ino))
        {
            return Ok(());
        }
        clear_name(target)
            .and_then(|()| linkat(&dir, &name, &target.dir, &target.name, AtFlags::empty()))
            .map_err(|error| failed(entry, error))
    }

    fn remember_directory(&mut self, path: PathBuf, entry: Entry) -> Result<()> {
        let attributes: usize = entry
            .xattrs
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum();
        self.budget.remember(
            path.as_os_str().len() + entry.path.len() + entry.link.len() + attributes + 256,
        )?;
        self.directories.push((path, entry));
        Ok(())
    }

    /// Last to first, so that what is inside is done before what could shut us out of it.
    fn finish_directories(&mut self) -> Result<()> {
        for (path, entry) in std::mem::take(&mut self.directories).into_iter().rev() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            let path = if path.as_os_str().is_empty() {
                Path::new(".")
            } else {
                &path
            };
            let finished = match self.root.open_in_root(path, flags) {
                Ok(dir) => self.finish_fd(&dir, &entry),
                // Later entries put something else in its place, or said it twice and the last word shut us out.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => Ok(()),
                Err(error) => Err(error),
            };
            finished.map_err(|error| failed(&entry, error))?;
        }
        Ok(())
    }

    /// Owner, attributes, mode, time: in this order, see `copy/attributes.rs`.
    fn finish_fd(&mut self, file: impl AsFd, entry: &Entry) -> Result<(), Errno> {
        chown_fd(
            &file,
            entry.uid,
            entry.gid,
            self.owners,
            &mut self.budget.counts,
        )?;
        for (name, value) in &entry.xattrs {
            let is_copied = xattr::travels(name, Origin::Foreign)
                && !xattr::is_acl(name)
                && xattr::set(&file, OsStr::from_bytes(name), value)?;
            if !is_copied {
                self.budget.counts.xattrs += 1;
            }
        }
        fchmod(&file, mode(entry))?;
        set_mtime(&file, entry.mtime.0, entry.mtime.1)
    }

    fn finish_name(&mut self, target: &EntryTarget, entry: &Entry) -> Result<(), Errno> {
        let (dir, name) = (&target.dir, &target.name);
        chown_name(
            dir,
            name,
            entry.uid,
            entry.gid,
            self.owners,
            &mut self.budget.counts,
        )?;
        set_mtime_name(dir, name, entry.mtime.0, entry.mtime.1)
    }
}

fn mode(entry: &Entry) -> Mode {
    Mode::from_raw_mode(entry.mode & 0o7777)
}

fn failed(entry: &Entry, error: Errno) -> TemplateError {
    TemplateError::Io {
        action: format!("unpack `{}`", show(&entry.path)),
        source: error.into(),
    }
}

fn show(name: &[u8]) -> String {
    String::from_utf8_lossy(name).chars().take(200).collect()
}
