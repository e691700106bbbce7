//! Removes what no template and no sandbox uses.
//!
//! ```text
//! layers/<id>  ──(under the lock: unnamed, unused, old, unlocked)──▶  layers/.trash-<random>  ──▶  gone
//! ```
//! The rename is what condemns a layer; a crash after it leaves trash, which the next sweep removes whatever its age.

use std::collections::HashSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};

use super::Store;
use crate::error::{OperationExt, Result};
use crate::layer::random_suffix;
use crate::manifest::layer_id;
use crate::remove::remove_tree;

/// What a sweep spares.
#[derive(Clone, Debug)]
pub struct SweepOptions {
    /// Layers younger than this stay: a sandbox may be starting on them. Zero to remove all that is unused.
    pub older_than: Duration,
    /// Layers of existing sandboxes, as in [`super::Template::layers`].
    pub in_use: Vec<PathBuf>,
}

impl Default for SweepOptions {
    /// Ten minutes, nothing in use.
    fn default() -> Self {
        Self {
            older_than: Duration::from_secs(600),
            in_use: Vec::new(),
        }
    }
}

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Swept {
    /// Names of the layers that are gone.
    pub layers: Vec<String>,
    /// Left-overs of interrupted work that are gone.
    pub leftovers: usize,
}

impl Store {
    /// Removes layers that no template names, no sandbox uses and nobody is filling, and what crashes left.
    ///
    /// # Errors
    /// When a manifest cannot be read (its layers would be lost), or something cannot be removed.
    pub fn sweep(&self, options: &SweepOptions) -> Result<Swept> {
        let mut swept = Swept::default();
        let trash = {
            let _locked = self.lock()?;
            swept.leftovers += self.sweep_temporaries(options.older_than)?;
            self.condemn(options, &mut swept)?
        };
        // Not under the lock: large trees take their time, and nobody can find these any more.
        for (path, _lock) in trash {
            remove_tree(&path)?;
        }
        Ok(swept)
    }

    /// Moves away what is to go. The locks tell other sweeps that somebody is removing it.
    fn condemn(
        &self,
        options: &SweepOptions,
        swept: &mut Swept,
    ) -> Result<Vec<(PathBuf, OwnedFd)>> {
        let manifests = self.manifests()?;
        let mut used: HashSet<&str> = manifests
            .iter()
            .flat_map(|manifest| manifest.stored_layers())
            .collect();
        // By name, not by path: the same store may be known by two paths, and sparing too much is the safe mistake.
        used.extend(options.in_use.iter().filter_map(|path| layer_id(path)));
        let mut trash = Vec::new();
        for path in entries(&self.layers)? {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let is_trash = name.starts_with(".trash-");
            let is_spared = used.contains(name.as_str()) || !is_older(&path, options.older_than);
            if is_spared && !is_trash {
                continue;
            }
            // The process that has the lock is filling or removing it.
            let Some(lock) = try_lock(&path) else {
                continue;
            };
            if is_trash {
                swept.leftovers += 1;
                trash.push((path, lock));
                continue;
            }
            let condemned = self.layers.join(format!(".trash-{}", random_suffix()?));
            fs::rename(&path, &condemned)
                .operation(|| format!("condemn layer `{}`", path.display()))?;
            trash.push((condemned, lock));
            swept.layers.push(name);
        }
        swept.layers.sort();
        Ok(trash)
    }

    /// Manifests that were being written by a process that died.
    fn sweep_temporaries(&self, older_than: Duration) -> Result<usize> {
        let mut removed = 0;
        for path in entries(&self.templates)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // Writers hold the lock that we hold, so whatever is here has no writer; the age is for the cautious.
            if name.starts_with(".tmp-") && is_older(&path, older_than) {
                fs::remove_file(&path).operation(|| format!("remove `{}`", path.display()))?;
                removed += 1;
            }
        }
        Ok(removed)
    }
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>> {
    let listing = || format!("list `{}`", dir.display());
    let entries = fs::read_dir(dir).operation(listing)?;
    entries
        .map(|entry| entry.map(|entry| entry.path()).operation(listing))
        .collect()
}

/// Unknown ages, such as times in the future, count as young unless everything is to go.
fn is_older(path: &Path, than: Duration) -> bool {
    let modified = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    let age = modified
        .ok()
        .and_then(|modified| SystemTime::now().duration_since(modified).ok());
    than.is_zero() || age.is_some_and(|age| age >= than)
}

fn try_lock(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = open(path, flags, Mode::empty()).ok()?;
    flock(&dir, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(dir)
}
