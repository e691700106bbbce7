//! Volumes: named folders that outlive sandboxes and can be in several of them at once.
//!
//! Root: a sparse ext4 image of the volume's size, whose root folder is the volume. All mounts of it share one loop device and
//! with it one file system of the kernel's (see `device`). Others: a plain folder, without a bound on its size.
//!
//! Two locks, both in memory and gone with a restart: whoever gives a volume to a sandbox shares `volume-<id>.lock` until the
//! sandbox is on record, and whoever makes or removes the volume holds it alone; `volume-<id>.device.lock` is held while the
//! loop device is looked for, and says its number.

mod device;
mod mounts;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) use device::attach;
pub(crate) use mounts::{check, pieces};

use crate::context::Context;
use crate::disk::IMAGE;
use crate::error::{EngineError, ErrorKind, Result};
use crate::init::VolumePlan;
use crate::layout::DataDir;
use crate::mode::Mode;
use crate::spec::MountSpec;
use crate::sys::Doing;
use crate::sys::lock::Lock;

/// What a sandbox with volumes is told where they are folders.
pub(crate) const NO_LIMIT: &str = "no limit on how much fits into its volumes";

/// The user of sandboxes, to whom the root of a volume belongs.
pub(crate) const USER: u32 = 1000;

const MAX_ID: usize = 64;
/// What the folder of a volume is called until it is whole: no id begins with a dot.
const UNFINISHED: &str = ".new-";
/// How long to wait for somebody else who works on the same volume.
const PATIENCE: Duration = Duration::from_secs(30);

/// The folder of one volume.
#[derive(Clone, Debug)]
pub(crate) struct VolumeDir {
    id: String,
    volumes: PathBuf,
    run: PathBuf,
}

impl VolumeDir {
    /// Names the folder of volume `id`; nothing is touched.
    ///
    /// # Errors
    /// `Invalid` when that cannot be the id of a volume.
    pub(crate) fn new(data: &DataDir, id: &str) -> Result<Self> {
        let fits = (1..=MAX_ID).contains(&id.len());
        if !fits || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            let short: String = id.chars().take(MAX_ID).collect();
            let message = format!("`{}` cannot be the id of a volume", short.escape_debug());
            return Err(EngineError::new(ErrorKind::Invalid, message)
                .hint(format!("use 1 to {MAX_ID} letters and digits")));
        }
        Ok(Self {
            id: id.to_owned(),
            volumes: data.volumes(),
            run: data.run(),
        })
    }

    /// Those whose making was begun: which of them somebody still works on, their locks say.
    pub(crate) fn unfinished(data: &DataDir) -> Result<Vec<Self>> {
        let volumes = data.volumes();
        let entries = std::fs::read_dir(&volumes).doing("list", volumes.display())?;
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
    pub(crate) fn fresh(&self) -> PathBuf {
        self.volumes.join(format!("{UNFINISHED}{}", self.id))
    }

    /// Where it is put aside, on its way out.
    pub(crate) fn aside(&self, data: &DataDir, tag: &str) -> PathBuf {
        data.trash().join(format!("volume-{}-{tag}", self.id))
    }

    /// The volume as a folder of the host, where it is one.
    pub(crate) fn folder(&self) -> PathBuf {
        folder_in(&self.root())
    }

    fn lock_path(&self) -> PathBuf {
        self.run.join(format!("volume-{}.lock", self.id))
    }

    fn device_lock(&self) -> PathBuf {
        self.run.join(format!("volume-{}.device.lock", self.id))
    }

    pub(crate) fn is_there(&self) -> bool {
        self.root().is_dir()
    }

    /// Keeps it from being removed.
    fn hold(&self) -> Result<Lock> {
        let path = self.lock_path();
        let held = || -> std::io::Result<Lock> {
            loop {
                let lock = Lock::share(&path)?;
                if lock.is_at(&path) {
                    return Ok(lock);
                }
            }
        };
        Ok(held().doing("share", path.display())?)
    }

    /// Takes it for making or removing it.
    pub(crate) fn take(&self) -> Result<Lock> {
        let path = self.lock_path();
        let taken = || -> std::io::Result<Option<Lock>> {
            loop {
                match Lock::take(&path, PATIENCE)? {
                    Some(lock) if !lock.is_at(&path) => {}
                    other => return Ok(other),
                }
            }
        };
        taken()
            .doing("lock", path.display())?
            .ok_or_else(|| self.busy())
    }

    /// Takes it if nobody has it.
    pub(crate) fn try_take(&self) -> Result<Option<Lock>> {
        let path = self.lock_path();
        let lock = Lock::try_take(&path).doing("lock", path.display())?;
        Ok(lock.filter(|lock| lock.is_at(&path)))
    }

    /// Removes the locks themselves. Only for the holder of a volume that is not there: who waits for it looks again.
    pub(crate) fn forget(&self) {
        for path in [self.device_lock(), self.lock_path()] {
            let _ = std::fs::remove_file(path);
        }
    }

    fn busy(&self) -> EngineError {
        EngineError::new(ErrorKind::Busy, format!("volume `{}` is busy", self.id)).hint("try again")
    }
}

/// The image in the folder of a volume.
pub(crate) fn image_in(root: &Path) -> PathBuf {
    root.join(IMAGE)
}

/// The volume in its folder, where it is a folder of the host.
pub(crate) fn folder_in(root: &Path) -> PathBuf {
    root.join("data")
}

/// Volumes that are not removed as long as this lives.
#[derive(Debug)]
pub(crate) struct Held {
    _locks: Vec<Lock>,
}

/// Keeps the volumes of a sandbox-to-be from being removed before it is on record.
///
/// # Errors
/// `NotFound` when there is none of that name.
pub(crate) fn hold(ctx: &Context, mounts: &[MountSpec]) -> Result<Held> {
    let held = mounts.iter().map(|mount| {
        let dir = VolumeDir::new(&ctx.data, &mount.volume)?;
        let missing = || {
            let message = format!("no volume `{}`", mount.volume);
            EngineError::new(ErrorKind::NotFound, message)
                .hint("make it first; its files are gone if it was removed")
        };
        // Before the lock, so that asking for what never was leaves none.
        if !dir.is_there() {
            return Err(missing());
        }
        let lock = dir.hold()?;
        dir.is_there().then_some(lock).ok_or_else(missing)
    });
    let _locks = held.collect::<Result<_>>()?;
    Ok(Held { _locks })
}

/// Opens the volumes of a sandbox as detached mounts, where they are images; else none. Adds to `repairs` what had to be
/// repaired.
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
        let mounted = attach(&dir, &image_in(&dir.root()))?;
        repairs.extend(
            mounted
                .repair
                .map(|what| format!("volume at `{}`: {what}", mount.path)),
        );
        Ok(mounted.tree)
    };
    mounts.iter().map(open).collect()
}

/// What the first process of a sandbox needs to know of its volumes.
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
    fn a_lock_that_was_removed_while_somebody_waited_is_no_lock() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = DataDir::new(folder.path());
        std::fs::create_dir_all(data.run()).expect("make");
        let dir = VolumeDir::new(&data, "a").expect("an id");
        let first = dir.take().expect("take");
        assert!(dir.try_take().expect("try").is_none());
        dir.forget();
        assert!(!first.is_at(&dir.lock_path()));
        let second = dir.take().expect("another lock of the same name");
        assert!(second.is_at(&dir.lock_path()));
        drop(first);
        assert!(dir.try_take().expect("try").is_none(), "still the second's");
    }
}
