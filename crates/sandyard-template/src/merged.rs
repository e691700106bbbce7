//! A directory of a template: its layers merged as overlayfs merges them.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use crate::overlay;
use crate::tree::{Tree, names, stat_entry};

/// A merged directory: the directories of the layers that it consists of, top first.
#[derive(Debug, Default)]
pub(crate) struct MergedDir {
    dirs: Vec<(usize, OwnedFd)>,
}

/// An entry of a merged directory.
#[derive(Debug)]
pub(crate) struct MergedEntry {
    /// Status of the topmost layer's entry.
    pub(crate) stat: Stat,
    /// Index of that layer.
    layer: usize,
    /// Indexes of the layers that it consists of, if it is a directory.
    pub(crate) layers: Vec<usize>,
}

impl MergedDir {
    /// Opens the directory `rel` in the `layers` with the indexes `having`.
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

    /// Looks `name` up. The topmost layer that has it decides; directories merge until one is opaque.
    pub(crate) fn lookup(&self, name: &OsStr) -> Result<Option<MergedEntry>, Errno> {
        let mut merged: Option<MergedEntry> = None;
        for (index, dir) in &self.dirs {
            let Some(stat) = stat_entry(dir, name)? else {
                continue;
            };
            if overlay::is_whiteout(dir, name, &stat)? {
                break;
            }
            let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            if !is_dir && merged.is_some() {
                break;
            }
            let entry = merged.get_or_insert(MergedEntry {
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
        Ok(merged)
    }

    /// The layer's directory that contains this entry.
    pub(crate) fn holder(&self, entry: &MergedEntry) -> Option<&OwnedFd> {
        let mut dirs = self.dirs.iter();
        dirs.find(|(index, _)| *index == entry.layer)
            .map(|(_, dir)| dir)
    }

    /// As [`MergedDir::holder`], by value.
    pub(crate) fn into_holder(self, entry: &MergedEntry) -> Option<OwnedFd> {
        let mut dirs = self.dirs.into_iter();
        dirs.find(|(index, _)| *index == entry.layer)
            .map(|(_, dir)| dir)
    }

    /// All names in any layer, including whiteouts.
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
        // Not readable (rootless, over the host's own tree): nothing of the host is opaque.
        Err(Errno::ACCESS | Errno::NOENT) => Ok(false),
        Err(error) => Err(error),
    }
}
