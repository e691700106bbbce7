//! Volumes: named folders that outlive sandboxes and can be mounted in several of them at once.
//!
//! As root, a volume is a sparse ext4 image of the volume's size. All its mounts share one loop device, and with it one mounted
//! file system (see `device`). As an ordinary user, it is a plain folder without a bound on its size.
//!
//! Each volume has two locks, which end with a restart of the host. A worker that starts a sandbox with the volume shares
//! `volume-<id>.lock` until the sandbox is on record; a worker that makes or deletes the volume holds it alone.
//! `volume-<id>.device.lock` is held while a worker looks for the loop device, and contains the device's number.

mod device;
mod mount_paths;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) use device::attach;
pub(crate) use mount_paths::{check, components};

use crate::context::Context;
use crate::disk::IMAGE;
use crate::error::{EngineError, ErrorKind, Result};
use crate::init::VolumePlan;
use crate::layout::DataDir;
use crate::mode::Mode;
use crate::spec::MountSpec;
use crate::sys::OperationExt;
use crate::sys::lock::Lock;

/// The limitation of sandboxes whose volumes are folders.
pub(crate) const NO_LIMIT: &str = "no limit on how much fits into its volumes";

/// The user id inside sandboxes that owns the root of a volume.
pub(crate) const USER: u32 = 1000;

const MAX_ID: usize = 64;
/// Prefix of the folder of a volume until it is finished. No id begins with a dot.
const UNFINISHED: &str = ".new-";
/// How long to wait for another worker on the same volume.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The folder of one volume.
#[derive(Clone, Debug)]
pub(crate) struct VolumeDir {
    id: String,
    volumes: PathBuf,
    run: PathBuf,
}

impl VolumeDir {
    /// Names the folder of volume `id`. Nothing on disk is touched.
    ///
    /// # Errors
    /// `Invalid` when that cannot be the id of a volume.
    pub(crate) fn new(data: &DataDir, id: &str) -> Result<Self> {
        let fits = (1..=MAX_ID).contains(&id.len());
        if !fits || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            let short: String = id.chars().take(MAX_ID).collect();
            let message = format!("`{}` is not a valid volume id", short.escape_debug());
            return Err(EngineError::new(ErrorKind::Invalid, message)
                .hint(format!("use 1 to {MAX_ID} letters and digits")));
        }
        Ok(Self {
            id: id.to_owned(),
            volumes: data.volumes(),
            run: data.run(),
        })
    }

    /// Volumes that are being made, or whose making was interrupted. Their locks say which.
    pub(crate) fn unfinished(data: &DataDir) -> Result<Vec<Self>> {
        let volumes = data.volumes();
        let entries = std::fs::read_dir(&volumes).operation("list", volumes.display())?;
        let id = |name: &str| Some(name.strip_prefix(UNFINISHED)?.to_owned());
        let ids = entries
            .flatten()
            .filter_map(|entry| id(entry.file_name().to_str()?));
        Ok(ids.filter_map(|id| Self::new(data, &id).ok()).collect())
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.volumes.join(&self.id)
    }

    /// Where it is made, before it is renamed.
    pub(crate) fn unfinished_root(&self) -> PathBuf {
        self.volumes.join(format!("{UNFINISHED}{}", self.id))
    }

    /// Where it is moved when it is deleted.
    pub(crate) fn trash(&self, data: &DataDir, tag: &str) -> PathBuf {
        data.trash().join(format!("volume-{}-{tag}", self.id))
    }

    /// The volume as a folder of the host, if it is one.
    pub(crate) fn folder(&self) -> PathBuf {
        folder_in(&self.root())
    }

    fn lock_path(&self) -> PathBuf {
        self.run.join(format!("volume-{}.lock", self.id))
    }

    fn device_lock(&self) -> PathBuf {
        self.run.join(format!("volume-{}.device.lock", self.id))
    }

    pub(crate) fn exists(&self) -> bool {
        self.root().is_dir()
    }

    /// Keeps it from being deleted.
    fn share(&self) -> Result<Lock> {
        let path = self.lock_path();
        let shared = || -> std::io::Result<Lock> {
            loop {
                let lock = Lock::share(&path)?;
                if lock.is_at(&path) {
                    return Ok(lock);
                }
            }
        };
        Ok(shared().operation("share", path.display())?)
    }

    /// Takes its lock, to make or delete it.
    pub(crate) fn take(&self) -> Result<Lock> {
        let path = self.lock_path();
        let taken = || -> std::io::Result<Option<Lock>> {
            loop {
                match Lock::take(&path, TIMEOUT)? {
                    Some(lock) if !lock.is_at(&path) => {}
                    other => return Ok(other),
                }
            }
        };
        taken()
            .operation("lock", path.display())?
            .ok_or_else(|| self.busy())
    }

    /// Takes its lock if it is free.
    pub(crate) fn try_take(&self) -> Result<Option<Lock>> {
        let path = self.lock_path();
        let lock = Lock::try_take(&path).operation("lock", path.display())?;
        Ok(lock.filter(|lock| lock.is_at(&path)))
    }

    /// Removes the lock files. Only for the holder of the lock of a volume that does not exist: workers that wait for it notice.
    pub(crate) fn remove_locks(&self) {
        for path in [self.device_lock(), self.lock_path()] {
            let _ = std::fs::remove_file(path);
        }
    }

    fn busy(&self) -> EngineError {
        EngineError::new(ErrorKind::Busy, format!("volume `{}` is busy", self.id)).hint("try again")
    }
}

/// The image in a volume's folder `root`.
pub(crate) fn image_in(root: &Path) -> PathBuf {
    root.join(IMAGE)
}

/// The files in a volume's folder `root`, if it is not an image.
pub(crate) fn folder_in(root: &Path) -> PathBuf {
    root.join("data")
}

/// Locks that keep volumes from being deleted.
#[derive(Debug)]
pub(crate) struct VolumeLocks {
    _locks: Vec<Lock>,
}

/// Keeps the volumes of a starting sandbox from being deleted before it is on record.
///
/// # Errors
/// `NotFound` when a volume does not exist.
pub(crate) fn share_all(ctx: &Context, mounts: &[MountSpec]) -> Result<VolumeLocks> {
    let locks = mounts.iter().map(|mount| {
        let dir = VolumeDir::new(&ctx.data, &mount.volume)?;
        let missing = || {
            let message = format!("no volume `{}`", mount.volume);
            EngineError::new(ErrorKind::NotFound, message)
                .hint("create it first; if it was deleted, its files are gone")
        };
        // Checked before the lock, so that no lock file is left of a volume that never existed.
        if !dir.exists() {
            return Err(missing());
        }
        let lock = dir.share()?;
        dir.exists().then_some(lock).ok_or_else(missing)
    });
    let _locks = locks.collect::<Result<_>>()?;
    Ok(VolumeLocks { _locks })
}

/// Opens the volumes of a sandbox as detached mounts. None, where volumes are folders. Adds repairs of their file systems to
/// `repairs`.
pub(crate) fn open(
    ctx: &Context,
    mounts: &[MountSpec],
    repairs: &mut Vec<String>,
) -> Result<Vec<OwnedFd>> {
    if ctx.mode != Mode::Root {
        return Ok(Vec::new());
    }
    let open = |mount: &MountSpec| {
        let dir = VolumeDir::new(&ctx.data, &mount.volume)?;
        let mounted = attach(&*ctx.kernel, &dir, &image_in(&dir.root()))?;
        repairs.extend(
            mounted
                .repair
                .map(|what| format!("volume at `{}`: {what}", mount.path)),
        );
        Ok(mounted.tree)
    };
    mounts.iter().map(open).collect()
}

/// What the first process needs to know about its volumes.
pub(crate) fn plans(ctx: &Context, mounts: &[MountSpec]) -> Vec<VolumePlan> {
    let folder = |mount: &MountSpec| {
        let dir = VolumeDir::new(&ctx.data, &mount.volume).ok();
        dir.filter(|_| ctx.mode != Mode::Root)
            .map(|dir| dir.folder())
    };
    let plan = |mount: &MountSpec| VolumePlan {
        path: mount.path.clone(),
        folder: folder(mount),
    };
    mounts.iter().map(plan).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_letters_and_digits_name_a_volume() {
        let data = DataDir::new("/data");
        for id in ["a", "0", "Vol7", &"x".repeat(MAX_ID)] {
            VolumeDir::new(&data, id).expect(id);
        }
        for id in [
            "",
            ".",
            "..",
            "a/b",
            "a-b",
            ".new-a",
            "a\0",
            "ä",
            &"x".repeat(MAX_ID + 1),
        ] {
            let error = VolumeDir::new(&data, id).expect_err(id);
            assert_eq!(error.kind, ErrorKind::Invalid, "{id}");
        }
    }

    #[test]
    fn a_lock_file_that_was_removed_meanwhile_does_not_lock() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = DataDir::new(folder.path());
        std::fs::create_dir_all(data.run()).expect("make");
        let dir = VolumeDir::new(&data, "a").expect("an id");
        let first = dir.take().expect("take");
        assert!(dir.try_take().expect("try").is_none());
        dir.remove_locks();
        assert!(!first.is_at(&dir.lock_path()));
        let second = dir.take().expect("another lock of the same name");
        assert!(second.is_at(&dir.lock_path()));
        drop(first);
        assert!(dir.try_take().expect("try").is_none(), "still the second's");
    }
}
