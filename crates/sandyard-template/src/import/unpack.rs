//! Unpacks an archive into a layer so that nothing in it can reach out.
//!
//! Names are taken apart here and never given to the kernel whole; directories on the way are opened as a process with
//! the layer as its root would see them (`openat2` with `RESOLVE_IN_ROOT`), so links lead where they will lead inside
//! the sandbox and nowhere else; the last component is made anew, never followed and never opened if it exists.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, fchmod, ftruncate, linkat, mkdirat, mknodat, openat, symlinkat, unlinkat,
};
use rustix::io::{Errno, pwrite};

use super::header::Extent;
use super::tar::{Archive, Entry, EntryKind};
use crate::budget::Budget;
use crate::copy::{Owners, chown_fd, chown_name, set_mtime, set_mtime_name};
use crate::error::TemplateError;
use crate::tree::{Tree, stat_entry};
use crate::xattr::{self, Origin};

const BUFFER: usize = 256 << 10;

/// Unpacks all of `archive` into the empty directory `root`.
pub(super) fn unpack<R: Read>(
    archive: &mut Archive<R>,
    root: &Tree,
    owners: Owners,
    budget: &mut Budget<'_>,
) -> Result<(), TemplateError> {
    let mut unpacker = Unpacker {
        root,
        owners,
        budget,
        directories: Vec::new(),
        parent: None,
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
    /// Directories get their modes and times last: a mode could keep us out, and each new entry changes the time.
    directories: Vec<(PathBuf, Entry)>,
    /// The directory of the entry before, which most often is that of the next.
    parent: Option<(PathBuf, OwnedFd)>,
    buffer: Vec<u8>,
}

/// The plain components of a name, `..` never leading above the root; `None` for the root itself.
fn split(path: &[u8]) -> Option<(PathBuf, OsString)> {
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

impl Unpacker<'_, '_> {
    fn entry<R: Read>(&mut self, entry: Entry, archive: &mut Archive<R>) -> Result<(), TemplateError> {
        self.budget.entry()?;
        if entry.path.contains(&0) || entry.link.contains(&0) {
            return Err(TemplateError::archive("a name holds a NUL"));
        }
        match entry.kind {
            EntryKind::Device => {
                self.budget.tally.devices += 1;
                return Ok(());
            }
            EntryKind::Unknown => {
                self.budget.tally.unknown += 1;
                return Ok(());
            }
            _ => {}
        }
        let Some((parent, name)) = split(&entry.path) else {
            return self.root_entry(entry);
        };
        let failed = Failed::new(&parent, &name);
        let dir = self.parent(&parent).map_err(|error| failed.with(error))?;
        match entry.kind {
            EntryKind::Directory => {
                make_directory(&dir, &name).map_err(|error| failed.with(error))?;
                let path = parent.join(&name);
                self.budget.remember(path.as_os_str().len() + 256 + xattr_bytes(&entry))?;
                self.directories.push((path, entry));
            }
            EntryKind::File => {
                clear_name(&dir, &name).map_err(|error| failed.with(error))?;
                self.file(&dir, &name, &entry, archive, &failed)?;
            }
            EntryKind::HardLink => self.hard_link(&dir, &name, &entry, &failed)?,
            _ => self
                .special(&dir, &name, &entry)
                .map_err(|error| failed.with(error))?,
        }
        // A link may stand where a directory was remembered.
        self.parent = (entry_keeps_directories(&failed)).then_some((parent, dir));
        Ok(())
    }

    /// The archive's own root, `./`, only has attributes.
    fn root_entry(&mut self, entry: Entry) -> Result<(), TemplateError> {
        if entry.kind == EntryKind::Directory {
            self.budget.remember(256 + xattr_bytes(&entry))?;
            self.directories.push((PathBuf::new(), entry));
        }
        Ok(())
    }
}
