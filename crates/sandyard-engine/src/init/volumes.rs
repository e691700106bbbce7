//! Mounts volumes in the sandbox's root.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, ResolveFlags, Uid};
use rustix::io::Errno;

use super::InitPlan;
use crate::error::{EngineError, ErrorKind, Result};
use crate::sys::{OperationExt, idmap, mount};
use crate::volume;

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens volumes that are folders of the host, while this process can still reach them. The worker has `received` the others as
/// mounts.
pub(super) fn open(plan: &InitPlan<'_>, received: Vec<OwnedFd>) -> Result<Vec<OwnedFd>> {
    let folders = plan.volumes.iter().filter_map(|one| one.folder.as_ref());
    let opened = folders.map(|folder| Ok(idmap::safe_clone(folder)?));
    let trees: Vec<_> = received
        .into_iter()
        .map(Ok)
        .chain(opened)
        .collect::<Result<_>>()?;
    if trees.len() == plan.volumes.len() {
        return Ok(trees);
    }
    let message = "the worker sent too few or too many mounts";
    Err(EngineError::new(ErrorKind::Failed, message))
}

/// Mounts each volume at its path. Only for a process that is in its new root, which no link leads out of.
pub(super) fn attach(plan: &InitPlan<'_>, trees: Vec<OwnedFd>) -> Result<()> {
    for (volume, tree) in plan.volumes.iter().zip(trees) {
        let target = make_folder(&volume.path)?;
        mount::attach_to(tree, target, &volume.path)?;
    }
    Ok(())
}

/// Opens the folder at `path`, making what is missing of it. No link is followed: neither the template nor
/// earlier programs decide where a volume is.
fn make_folder(path: &str) -> Result<OwnedFd> {
    let mut at = rustix::fs::open("/", FOLDER, Mode::empty()).operation("open", "/")?;
    for name in volume::components(path)? {
        at = match open_below(&at, name) {
            Err(Errno::NOENT) => {
                make_below(&at, name).operation("make a parent folder of", path)?;
                open_below(&at, name)
            }
            other => other,
        }
        .map_err(|error| explain(path, error))?;
    }
    Ok(at)
}

fn open_below(folder: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    rustix::fs::openat2(folder, name, FOLDER, Mode::empty(), resolve)
}

/// Makes a folder with the owner of its parent: in a user's home it belongs to the user.
fn make_below(folder: impl AsFd, name: &str) -> rustix::io::Result<()> {
    rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o755))?;
    let above = rustix::fs::statat(&folder, "", AtFlags::EMPTY_PATH)?;
    let owner = (Uid::from_raw(above.st_uid), Gid::from_raw(above.st_gid));
    // An owner without an id in this user namespace cannot own anything.
    let _ = rustix::fs::chownat(
        &folder,
        name,
        Some(owner.0),
        Some(owner.1),
        AtFlags::SYMLINK_NOFOLLOW,
    );
    Ok(())
}

fn explain(path: &str, error: Errno) -> EngineError {
    let why = match error {
        Errno::LOOP => "is a symbolic link, or below one",
        Errno::NOTDIR => "is not a folder, or below a file",
        other => return EngineError::failed(format!("opening `{path}` inside"), &other),
    };
    let message = format!("a volume cannot be mounted at `{path}`: inside the sandbox, it {why}");
    EngineError::new(ErrorKind::Conflict, message)
        .hint("mount the volume at another path, or use a template without that link or file")
}
