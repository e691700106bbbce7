//! Copies sandboxes and volumes for a backup, each as it is at one moment.
//!
//! A copy goes to `<data>/backup`, where the client takes it away. The sandboxes that write to the disk are frozen while it is copied: a file
//! system that changes meanwhile would be damaged in the copy. A crash before the thaw leaves a sandbox frozen but on record as
//! running; a sweep thaws it.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Instant;

use rustix::fs::syncfs;
use sandyard_core::{SandboxId, SandboxState};

use super::volume::users_of;
use crate::context::{Context, OpenSandbox};
use crate::disk::{self, OpenDisk};
use crate::error::{EngineError, ErrorKind, Result};
use crate::layout::SandboxDir;
use crate::mode::Mode;
use crate::sys::OperationExt;
use crate::volume::{self, VolumeDir, image_in};

/// How often the users of a volume may change while they are locked.
const ATTEMPTS: usize = 5;

/// Copies a sandbox's record, as that of a stopped one, and its disk. Returns for how many milliseconds it was frozen.
pub(crate) fn sandbox(ctx: &Context, id: &SandboxId) -> Result<usize> {
    check_mode(ctx)?;
    let mut open = ctx.open(id)?;
    disk::check_free_space_for(&ctx.data, disk::used_bytes(&open.dir, &open.record.disk))?;
    let to = SandboxDir::in_backup(&ctx.data, id);
    make_folder(to.root())?;
    let (opened, _) = disk::open(&*ctx.kernel, &open.dir, &mut open.record.disk)?;
    let frozen_ms = while_frozen(ctx, &[&open], || {
        flush_and_copy(&opened, &open.dir.image(), &to.image())
    })?;
    let mut record = open.record.clone();
    record.forget_life();
    record.state = SandboxState::Stopped;
    record.write(&to)?;
    Ok(frozen_ms)
}

/// Copies a volume's image. The sandboxes that have it mounted are frozen meanwhile; returns for how many milliseconds.
pub(crate) fn volume(ctx: &Context, id: &str) -> Result<usize> {
    check_mode(ctx)?;
    let dir = VolumeDir::new(&ctx.data, id)?;
    let image = image_in(&dir.root());
    let to = ctx.data.backup().join("volumes").join(id);
    if !dir.exists() {
        return Err(EngineError::new(
            ErrorKind::NotFound,
            format!("no volume `{id}`"),
        ));
    }
    for _ in 0..ATTEMPTS {
        let users = users_of(ctx, id)?;
        let open: Result<Vec<OpenSandbox>> = users.iter().map(|user| ctx.open(user)).collect();
        let open = match open {
            Err(error) if error.kind == ErrorKind::NotFound => continue,
            other => other?,
        };
        // With the lock, no further sandbox starts with the volume.
        let _lock = dir.take()?;
        if users_of(ctx, id)? != users {
            continue;
        }
        let mounted = OpenDisk::Mount(volume::attach(&*ctx.kernel, &dir, &image)?.tree);
        make_folder(&to)?;
        let open: Vec<_> = open.iter().collect();
        return while_frozen(ctx, &open, || {
            flush_and_copy(&mounted, &image, &image_in(&to))
        });
    }
    Err(EngineError::new(ErrorKind::Busy, format!("volume `{id}` is busy")).hint("try again"))
}

/// The files of an ordinary user's sandboxes are plain folders, which no copy shows as they are at one moment.
fn check_mode(ctx: &Context) -> Result<()> {
    match ctx.mode {
        Mode::Root => Ok(()),
        _ => Err(EngineError::new(
            ErrorKind::Unsupported,
            "only a data directory of root can be backed up",
        )
        .hint("end the server and the launcher, and copy the directory with `tar`")),
    }
}

fn make_folder(path: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    Ok(made.operation("make", path.display())?)
}

/// Freezes those that run, works, and thaws them. Returns for how many milliseconds they were frozen.
fn while_frozen(
    ctx: &Context,
    sandboxes: &[&OpenSandbox],
    work: impl FnOnce() -> Result<()>,
) -> Result<usize> {
    let started_at = Instant::now();
    let running: Vec<_> = sandboxes
        .iter()
        .filter(|open| open.record.observed_state() == SandboxState::Running)
        .collect();
    let frozen = running
        .iter()
        .try_for_each(|open| ctx.runtime.freeze(ctx, &open.record));
    let worked = frozen.and_then(|()| work());
    let mut thawed = Ok(());
    for open in &running {
        thawed = thawed.and(ctx.runtime.thaw_if_frozen(ctx, &open.record));
    }
    worked?;
    thawed?;
    match running.is_empty() {
        true => Ok(0),
        false => Ok(started_at.elapsed().as_millis().max(1) as usize),
    }
}

/// Writes what the kernel still has in memory into an image, and copies the image.
fn flush_and_copy(disk: &OpenDisk, image: &Path, to: &Path) -> Result<()> {
    let root = disk.path();
    let flushed = File::open(&root).and_then(|root| Ok(syncfs(root)?));
    flushed.operation("write out", image.display())?;
    // One that a crash has left.
    let _ = fs::remove_file(to);
    let copied = disk::copy_sparse(image, to);
    if copied.is_err() {
        let _ = fs::remove_file(to);
    }
    Ok(copied.operation("copy", image.display())?)
}
