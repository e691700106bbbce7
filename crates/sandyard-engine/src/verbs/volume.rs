//! Makes and removes volumes.

use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::Path;

use super::{delete, list};
use crate::context::Context;
use crate::disk;
use crate::error::{EngineError, ErrorKind, Result};
use crate::mode::Mode;
use crate::random;
use crate::record::Record;
use crate::sys::Doing;
use crate::volume::{self, USER, VolumeDir, folder_in, image_in};

/// Less than this holds a file system and nothing else.
const LEAST_BYTES: u64 = 16 << 20;
/// More than this no file system of that kind takes.
const MOST_BYTES: u64 = 8 << 40;

/// Makes an empty volume; one that is there stays as it is.
pub(crate) fn create(ctx: &Context, id: &str, size_bytes: u64) -> Result<()> {
    let dir = VolumeDir::new(&ctx.data, id)?;
    if size_bytes == 0 || size_bytes > MOST_BYTES {
        let message = format!("a volume of {size_bytes} bytes is out of range");
        return Err(EngineError::new(ErrorKind::Invalid, message)
            .hint(format!("allowed is up to {MOST_BYTES} bytes")));
    }
    let _lock = dir.take()?;
    if dir.is_there() {
        return Ok(());
    }
    disk::check_free_space(&ctx.data)?;
    let fresh = dir.fresh();
    // What an earlier attempt left: nobody else is at it, for the lock is ours.
    delete::remove_tree(&fresh)?;
    let made = make(ctx, &dir, &fresh, size_bytes);
    if made.is_err() {
        let _ = delete::remove_tree(&fresh);
        dir.forget();
    }
    made
}

fn make(ctx: &Context, dir: &VolumeDir, fresh: &Path, size_bytes: u64) -> Result<()> {
    let folder = fs::DirBuilder::new().mode(0o700).create(fresh);
    folder.doing("make", fresh.display())?;
    if ctx.mode == Mode::Root {
        make_image(dir, &image_in(fresh), size_bytes)?;
    } else {
        let folder = folder_in(fresh);
        fs::create_dir(&folder).doing("make", folder.display())?;
        give_to_user(ctx.mode, &folder)?;
    }
    let root = dir.root();
    fs::rename(fresh, &root).doing("keep", root.display())?;
    let volumes = ctx.data.volumes();
    let written = File::open(&volumes).and_then(|folder| folder.sync_all());
    Ok(written.doing("write out", volumes.display())?)
}

fn make_image(dir: &VolumeDir, image: &Path, size_bytes: u64) -> Result<()> {
    let size_bytes = size_bytes.max(LEAST_BYTES).next_multiple_of(1 << 20);
    disk::format(image, size_bytes, &[])?;
    let mounted = disk::OpenDisk::Mount(volume::attach(dir, image)?.tree);
    // For repairs only, and nothing a user would expect in an empty folder.
    let repairs = mounted.path().join("lost+found");
    fs::remove_dir(&repairs).doing("remove", repairs.display())?;
    give_to_user(Mode::Root, &mounted.path())?;
    drop(mounted);
    // On disk before its name is: after a power failure there is a whole volume or none.
    let written = File::open(image).and_then(|image| image.sync_all());
    Ok(written.doing("write out", image.display())?)
}

/// Lets every user of a sandbox write into the root of a volume.
fn give_to_user(mode: Mode, root: &Path) -> Result<()> {
    if mode.has_many_ids() {
        chown(root, Some(USER), Some(USER)).doing("give away", root.display())?;
    }
    let open = fs::set_permissions(root, fs::Permissions::from_mode(0o777));
    Ok(open.doing("set mode of", root.display())?)
}

/// Removes a volume with all that is in it. Removing what is not there succeeds.
///
/// # Errors
/// `Conflict` while it belongs to a sandbox, stopped ones too.
pub(crate) fn delete(ctx: &Context, id: &str) -> Result<()> {
    let Ok(dir) = VolumeDir::new(&ctx.data, id) else {
        return Ok(());
    };
    if !dir.is_there() {
        return Ok(());
    }
    // With it no sandbox is between having found the volume and being on record.
    let _lock = dir.take()?;
    if let Some(user) = user_of(ctx, id)? {
        let message = format!("volume `{id}` is in use by sandbox `{user}`");
        return Err(EngineError::new(ErrorKind::Conflict, message)
            .hint("delete that sandbox first; stopping it is not enough"));
    }
    let aside = dir.aside(&ctx.data, &random::token()?[..8]);
    match fs::rename(dir.root(), &aside) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        other => other.doing("put aside", aside.display())?,
    }
    dir.forget();
    delete::remove_aside(&aside);
    Ok(())
}

/// A sandbox that has the volume, if there is one.
fn user_of(ctx: &Context, id: &str) -> Result<Option<String>> {
    for sandbox in list::ids(ctx)? {
        // One whose record cannot be read must not keep every volume for ever; if it runs, it keeps its files till its end.
        let Ok(Some(record)) = Record::read(&ctx.data.sandbox(&sandbox)) else {
            continue;
        };
        if record.spec.mounts.iter().any(|mount| mount.volume == id) {
            return Ok(Some(sandbox.to_string()));
        }
    }
    Ok(None)
}

/// Removes what is left of volumes that were never finished.
pub(crate) fn sweep(ctx: &Context) -> Result<()> {
    let mut outcome = Ok(());
    for dir in VolumeDir::unfinished(&ctx.data)? {
        let Some(_lock) = dir.try_take()? else {
            continue;
        };
        outcome = outcome.and(delete::remove_tree(&dir.fresh()));
        if !dir.is_there() {
            dir.forget();
        }
    }
    outcome
}
