//! The directory where copies wait to be archived: `<data>/backup`.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::archive::Archive;

/// Copies are archived when they use this space: `tar` looks for the end of the archive each time.
const BATCH_BYTES: u64 = 1 << 30;

/// The directory, for one backup at a time. It is removed at the end.
#[derive(Debug)]
pub(super) struct Staging {
    root: PathBuf,
    _lock: File,
}

impl Staging {
    /// Takes the directory and removes what an interrupted backup has left.
    pub(super) fn begin(data_dir: &Path) -> anyhow::Result<Self> {
        let root = data_dir.join("backup");
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&root);
        made.with_context(|| format!("creating `{}`", root.display()))?;
        let lock = File::open(&root)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => {
                bail!("another backup of `{}` is running", data_dir.display())
            }
            other => other?,
        }
        for name in fs::read_dir(&root)?.flatten() {
            remove(&name.path())?;
        }
        Ok(Self { root, _lock: lock })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(super) fn batch(&self) -> Batch<'_> {
        Batch {
            staging: self,
            names: Vec::new(),
            bytes: 0,
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// Copies that are archived together.
#[derive(Debug)]
pub(super) struct Batch<'a> {
    staging: &'a Staging,
    names: Vec<String>,
    bytes: u64,
}

impl Batch<'_> {
    /// Adds a copy.
    pub(super) fn add(&mut self, archive: &mut Archive, name: String) -> anyhow::Result<()> {
        self.bytes += allocated_bytes(&self.staging.path(&name));
        self.names.push(name);
        match self.bytes >= BATCH_BYTES {
            true => self.flush(archive),
            false => Ok(()),
        }
    }

    /// Archives the copies and removes them.
    pub(super) fn flush(&mut self, archive: &mut Archive) -> anyhow::Result<()> {
        let names = std::mem::take(&mut self.names);
        if !names.is_empty() {
            archive.add(self.staging.root(), &names)?;
        }
        self.bytes = 0;
        names
            .iter()
            .try_for_each(|name| remove(&self.staging.path(name)))
    }
}

fn remove(path: &Path) -> anyhow::Result<()> {
    let removed = match path.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
    removed.with_context(|| format!("removing `{}`", path.display()))
}

/// Space that a file or directory uses on its disk.
pub(super) fn allocated_bytes(path: &Path) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return 0;
    };
    let entries = match metadata.is_dir() {
        true => fs::read_dir(path).into_iter().flatten().flatten().collect(),
        false => Vec::new(),
    };
    let below: u64 = entries
        .iter()
        .map(|entry| allocated_bytes(&entry.path()))
        .sum();
    metadata.blocks() * 512 + below
}

/// The names in a directory but those that begin with a dot, sorted; none if there is no such directory.
pub(super) fn names_in(folder: &Path) -> anyhow::Result<Vec<String>> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(Vec::new());
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}
