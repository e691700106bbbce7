//! A layer while it is being filled.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open, syncfs};

use rustix::io::Errno;

use crate::error::{OperationExt, Result, TemplateError};
use crate::remove::remove_tree;
use crate::tree::Tree;

/// A new layer, locked against sweeping and removed again unless kept.
///
/// A process that dies leaves an unlocked layer that no manifest names, which is what a sweep looks for.
#[derive(Debug)]
pub(crate) struct NewLayer {
    id: String,
    dir: PathBuf,
    /// Holds the flock, which the kernel releases when the process dies.
    lock: OwnedFd,
    is_published: bool,
}

impl NewLayer {
    /// Makes an empty layer under `layers`. The caller holds the store's lock, so that no sweep sees it unlocked.
    pub(crate) fn create(layers: &Path, stem: &str) -> Result<Self> {
        let id = format!("{stem}-{}", random_suffix()?);
        let dir = layers.join(&id);
        let making = || format!("make layer `{}`", dir.display());
        make_dir(&dir, 0o700).operation(making)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let lock = open(&dir, flags, Mode::empty()).operation(making)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).operation(making)?;
        let layer = Self {
            id,
            dir,
            lock,
            is_published: false,
        };
        make_dir(&layer.tree_path(), 0o755)
            .operation(|| format!("make layer `{}`", layer.dir.display()))?;
        Ok(layer)
    }

    /// Its name in manifests.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Where the tree is.
    pub(crate) fn tree_path(&self) -> PathBuf {
        self.dir.join("tree")
    }

    /// The tree, to be filled.
    pub(crate) fn tree(&self) -> Result<Tree> {
        Tree::open(&self.tree_path())
    }

    /// Syncs it to disk, so that no manifest survives a power failure without its layer.
    pub(crate) fn sync(&self) -> Result<()> {
        syncfs(self.tree()?).operation(|| format!("write out layer `{}`", self.dir.display()))
    }

    /// Keeps it under the name `id`, which tells its content. If there is such a layer already, that is kept instead.
    ///
    /// Until what is returned is dropped, no sweep removes it. The caller holds the store's lock.
    pub(crate) fn share(mut self, id: &str) -> Result<SharedLayer> {
        let dir = self.dir.with_file_name(id);
        if !dir.exists() {
            std::fs::rename(&self.dir, &dir)
                .operation(|| format!("keep layer `{}`", dir.display()))?;
            self.is_published = true;
        }
        // Its lock would keep out the one that follows.
        drop(self);
        SharedLayer::open(&dir)?.ok_or(TemplateError::LayerGone { layer: dir })
    }

    /// Keeps it: a manifest names it now.
    pub(crate) fn keep(mut self) {
        self.is_published = true;
    }
}

impl Drop for NewLayer {
    fn drop(&mut self) {
        if !self.is_published {
            // What cannot be removed now is found by the next sweep.
            let _ = remove_tree(&self.dir);
        }
        // Closing is not enough: a process that is just being started also has the descriptor for a moment.
        let _ = flock(&self.lock, FlockOperation::Unlock);
    }
}

/// A finished layer that several templates may share, held against sweeping.
#[derive(Debug)]
pub(crate) struct SharedLayer {
    _lock: OwnedFd,
}

impl SharedLayer {
    /// `None` if there is no such layer. The caller holds the store's lock.
    pub(crate) fn open(dir: &Path) -> Result<Option<Self>> {
        let opening = || format!("open layer `{}`", dir.display());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let lock = match open(dir, flags, Mode::empty()) {
            Ok(lock) => lock,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error).operation(opening),
        };
        // Nobody fills a layer that has its final name, so this waits for no one.
        flock(&lock, FlockOperation::LockShared).operation(opening)?;
        Ok(Some(Self { _lock: lock }))
    }
}

/// Makes one directory with exactly this mode, whatever the umask.
pub(crate) fn make_dir(path: &Path, mode: u32) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir(path)?;
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode))
}

/// Twelve random characters.
pub(crate) fn random_suffix() -> Result<String> {
    let mut bytes = [0_u8; 6];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .operation(|| "get random bytes".to_owned())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
