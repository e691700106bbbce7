//! What the template has at a path: its layers merged as overlayfs merges them.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use crate::overlay;
use crate::tree::{Tree, names, stat_entry};

/// A directory of the template: the directories of the layers that together are it, top first.
#[derive(Debug, Default)]
pub(crate) struct LowerDir {
    dirs: Vec<(usize, OwnedFd)>,
}

/// What the template has under a name.
#[derive(Debug)]
pub(crate) struct LowerEntry {
    /// Status of the topmost.
    pub(crate) stat: Stat,
    /// Which layer that is.
    layer: usize,
    /// Layers that make up the directory, if it is one.
    pub(crate) layers: Vec<usize>,
}

impl LowerDir {
    /// Opens the directory `rel` in those of the `layers` that have a part in it.
    pub(crate) fn open(layers: &[Tree], having: &[usize], rel: &Path) -> Result<Self, Errno> {
        let mut dirs = Vec::new();
        for &index in having {
            match layers[index].open_dir(rel) {
                Ok(dir) => dirs.push((index, dir)),
                // Overlayfs does not see into mounts below a layer; a live host may change under us.
                Err(Errno::XDEV | Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self { dirs })
    }

    /// Looks `name` up: the topmost layer that says anything decides, directories merge until something hides the rest.
    pub(crate) fn lookup(&self, name: &OsStr) -> Result<Option<LowerEntry>, Errno> {
        let mut found: Option<LowerEntry> = None;
        for (index, dir) in &self.dirs {
            let Some(stat) = stat_entry(dir, name)? else {
                continue;
            };
            if overlay::is_whiteout(dir, name, &stat)? {
                break;
            }
            let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            if !is_dir && found.is_some() {
                break;
            }
            let entry = found.get_or_insert(LowerEntry {
                stat,
                layer: *index,
                layers: Vec::new(),
            });
            if !is_dir {
                break;
            }
            entry.layers.push(*index);
            if hides_below(dir, name)? {
                break;
            }
        }
        Ok(found)
    }

    /// The layer's directory that holds this entry, to read it from.
    pub(crate) fn holder(&self, entry: &LowerEntry) -> Option<&OwnedFd> {
        let mut dirs = self.dirs.iter();
        dirs.find(|(index, _)| *index == entry.layer)
            .map(|(_, dir)| dir)
    }

    /// As [`LowerDir::holder`], to keep.
    pub(crate) fn into_holder(self, entry: &LowerEntry) -> Option<OwnedFd> {
        let mut dirs = self.dirs.into_iter();
        dirs.find(|(index, _)| *index == entry.layer)
            .map(|(_, dir)| dir)
    }

    /// All names that any layer has here, whited out or not.
    pub(crate) fn names(&self) -> Result<Vec<OsString>, Errno> {
        let mut all = Vec::new();
        for (_, dir) in &self.dirs {
            all.extend(names(dir)?);
        }
        all.sort();
        all.dedup();
        Ok(all)
    }
}

fn hides_below(dir: &OwnedFd, name: &OsStr) -> Result<bool, Errno> {
    use rustix::fs::{Mode, OFlags, openat};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(dir, name, flags, Mode::empty()) {
        Ok(child) => overlay::is_opaque(child),
        // Not readable to us (rootless, over the host's own tree): the host marks nothing opaque.
        Err(Errno::ACCESS | Errno::NOENT) => Ok(false),
        Err(error) => Err(error),
    }
}
