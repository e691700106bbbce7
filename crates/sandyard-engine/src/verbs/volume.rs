//! Makes and deletes volumes.

use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::Path;

use sandyard_core::SandboxId;

use super::{delete, list};
use crate::context::Context;
use crate::disk;
use crate::error::{EngineError, ErrorKind, Result};
use crate::mode::Mode;
use crate::random;
use crate::record::Record;
use crate::sys::OperationExt;
use crate::volume::{self, USER, VolumeDir, folder_in, image_in};

/// The smallest image that has room for files, in bytes.
const LEAST_BYTES: u64 = 16 << 20;
/// The largest ext4, in bytes.
const MOST_BYTES: u64 = 8 << 40;

/// Makes an empty volume. An existing one is not changed.
pub(crate) fn create(ctx: &Context, id: &str, size_bytes: u64) -> Result<()> {
    let dir = VolumeDir::new(&ctx.data, id)?;
    if size_bytes == 0 || size_bytes > MOST_BYTES {
        let message = format!("a volume cannot have {size_bytes} bytes");
        return Err(EngineError::new(ErrorKind::Invalid, message)
            .hint(format!("use a size of 1 to {MOST_BYTES} bytes")));
    }
    let _lock = dir.take()?;
    if dir.exists() {
        return Ok(());
    }
    disk::check_free_space(&ctx.data)?;
    let fresh = dir.unfinished_root();
    // Left by an earlier attempt: no other worker uses it, since we have the lock.
    delete::remove_tree(&fresh)?;
    let made = make(ctx, &dir, &fresh, size_bytes);
    if made.is_err() {
        let _ = delete::remove_tree(&fresh);
        dir.remove_locks();
    }
    made
}

fn make(ctx: &Context, dir: &VolumeDir, fresh: &Path, size_bytes: u64) -> Result<()> {
    let folder = fs::DirBuilder::new().mode(0o700).create(fresh);
    folder.operation("make", fresh.display())?;
    if ctx.mode == Mode::Root {
        make_image(ctx, dir, &image_in(fresh), size_bytes)?;
    } else {
        let folder = folder_in(fresh);
        fs::create_dir(&folder).operation("make", folder.display())?;
        give_to_user(ctx.mode, &folder)?;
    }
    let root = dir.root();
    fs::rename(fresh, &root).operation("keep", root.display())?;
    let volumes = ctx.data.volumes();
    let written = File::open(&volumes).and_then(|folder| folder.sync_all());
    Ok(written.operation("write out", volumes.display())?)
}

fn make_image(ctx: &Context, dir: &VolumeDir, image: &Path, size_bytes: u64) -> Result<()> {
    let size_bytes = size_bytes.max(LEAST_BYTES).next_multiple_of(1 << 20);
    disk::format(image, size_bytes, &[])?;
    let mounted = disk::OpenDisk::Mount(volume::attach(&*ctx.kernel, dir, image)?.tree);
    // Only e2fsck uses it, and users do not expect it in an empty folder.
    let repairs = mounted.path().join("lost+found");
    fs::remove_dir(&repairs).operation("remove", repairs.display())?;
    give_to_user(Mode::Root, &mounted.path())?;
    drop(mounted);
    // Synced before the rename: after a power failure there is a whole volume or none.
    let written = File::open(image).and_then(|image| image.sync_all());
    Ok(written.operation("write out", image.display())?)
}

/// Lets every user of a sandbox write into the root of a volume.
fn give_to_user(mode: Mode, root: &Path) -> Result<()> {
    if mode.has_many_ids() {
        chown(root, Some(USER), Some(USER)).operation("change the owner of", root.display())?;
    }
    let open = fs::set_permissions(root, fs::Permissions::from_mode(0o777));
    Ok(open.operation("set mode of", root.display())?)
}

/// Deletes a volume with all its files. Deleting one that does not exist succeeds.
///
/// # Errors
/// `Conflict` while a sandbox uses it, even a stopped one.
pub(crate) fn delete(ctx: &Context, id: &str) -> Result<()> {
    let Ok(dir) = VolumeDir::new(&ctx.data, id) else {
        return Ok(());
    };
    if !dir.exists() {
        return Ok(());
    }
    // With the lock, no sandbox is between finding the volume and being on record.
    let _lock = dir.take()?;
    if let Some(user) = users_of(ctx, id)?.first() {
        let message = format!("volume `{id}` is in use by sandbox `{user}`");
        return Err(EngineError::new(ErrorKind::Conflict, message)
            .hint("delete that sandbox first; stopping it is not enough"));
    }
    let trash = dir.trash(&ctx.data, &random::token()?[..8]);
    match fs::rename(dir.root(), &trash) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        other => other.operation("move to", trash.display())?,
    }
    dir.remove_locks();
    delete::remove_in_background(ctx, &trash);
    Ok(())
}

/// The sandboxes that use a volume.
pub(super) fn users_of(ctx: &Context, id: &str) -> Result<Vec<SandboxId>> {
    let mut users = Vec::new();
    for sandbox in list::ids(ctx)? {
        // A sandbox whose record cannot be read must not keep every volume for ever. If it runs, it keeps the files until it ends.
        let Ok(Some(record)) = Record::read(&ctx.data.sandbox(&sandbox)) else {
            continue;
        };
        if record.spec.mounts.iter().any(|mount| mount.volume == id) {
            users.push(sandbox);
        }
    }
    users.sort();
    Ok(users)
}

/// Removes volumes that were never finished.
pub(crate) fn sweep(ctx: &Context) -> Result<()> {
    let mut outcome = Ok(());
    for dir in VolumeDir::unfinished(&ctx.data)? {
        let Some(_lock) = dir.try_take()? else {
            continue;
        };
        outcome = outcome.and(delete::remove_tree(&dir.unfinished_root()));
        if !dir.exists() {
            dir.remove_locks();
        }
    }
    outcome
}
