//! The folder for what is only valid until the host restarts: sockets, locks, claims.
//!
//! It is in memory if the host has a file system for that: making a file there takes microseconds however busy the disk is, and a
//! restart clears it. `<data>/run` is a link to it, so that every path starts with the data directory.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::statfs;

/// `TMPFS_MAGIC` of statfs(2).
const TMPFS: u32 = 0x0102_1994;

/// Makes `link` a link to a folder in memory, or a folder itself where there is none. `name` distinguishes data directories.
pub(crate) fn ensure(link: &Path, name: &str) -> io::Result<()> {
    match fs::read_link(link) {
        Ok(target) if make_own(&target).is_ok() => return Ok(()),
        // The folder it leads to can no longer be used.
        Ok(_) => fs::remove_file(link)?,
        // A folder already.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(()),
        Err(_) => {}
    }
    for parent in parents() {
        let target = parent.join(format!("sandyard-{name}"));
        if is_memory(&parent) && make_own(&target).is_ok() {
            return symlink(&target, link);
        }
    }
    make_own(link)
}

/// Removes the folder in memory that `link` leads to, and the link, if no sandbox has files there.
pub(crate) fn remove_if_unused(link: &Path) {
    let Ok(target) = fs::read_link(link) else {
        return;
    };
    let entries: Vec<PathBuf> = fs::read_dir(&target)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    let is_lock = |path: &PathBuf| {
        path.extension()
            .is_some_and(|extension| extension == "lock")
    };
    if !entries
        .iter()
        .all(|path| is_lock(path) || path.ends_with("ids"))
    {
        return;
    }
    // Not recursively: a worker may be claiming ids.
    if fs::remove_dir(target.join("ids")).is_ok() {
        entries
            .iter()
            .filter(|path| is_lock(path))
            .for_each(|path| drop(fs::remove_file(path)));
        // While something is in the folder, the link must stay.
        if fs::remove_dir(&target).is_ok() {
            let _ = fs::remove_file(link);
        }
    }
}

fn parents() -> Vec<PathBuf> {
    // The owner of files that we make, as the host sees it: in a user namespace root is not 0 for the host's /run.
    let uid = fs::metadata("/proc/self").map_or(0, |metadata| metadata.uid());
    match rustix::process::geteuid().is_root() && uid == 0 {
        true => vec!["/run".into(), "/dev/shm".into()],
        false => vec![format!("/run/user/{uid}").into(), "/dev/shm".into()],
    }
}

fn is_memory(folder: &Path) -> bool {
    statfs(folder).is_ok_and(|found| found.f_type as u32 == TMPFS)
}

/// Makes a folder for this user alone. Fails if another user has made it first.
fn make_own(folder: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        other => other?,
    }
    let found = fs::symlink_metadata(folder)?;
    let is_own = found.uid() == rustix::process::geteuid().as_raw();
    if !found.is_dir() || !is_own || found.mode() & 0o077 != 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_link_is_made_once_and_repaired_after_a_restart() {
        let folder = tempfile::tempdir().expect("a folder");
        let link = folder.path().join("run");
        let name = format!("test{}", std::process::id());
        ensure(&link, &name).expect("first");
        fs::write(link.join("file"), "kept").expect("write");
        ensure(&link, &name).expect("second");
        assert_eq!(fs::read_to_string(link.join("file")).expect("read"), "kept");
        if let Ok(target) = fs::read_link(&link) {
            fs::remove_dir_all(&target).expect("as a restart does");
            ensure(&link, &name).expect("third");
            assert!(link.is_dir());
            fs::remove_dir_all(&target).expect("clean up");
        }
    }

    #[test]
    fn an_unused_folder_is_removed_and_a_used_one_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let (link, target) = (folder.path().join("run"), folder.path().join("memory"));
        fs::create_dir_all(target.join("ids")).expect("make");
        symlink(&target, &link).expect("link");
        fs::write(target.join("births.lock"), "").expect("write");
        fs::create_dir(target.join("abc")).expect("a sandbox's folder");
        remove_if_unused(&link);
        assert!(link.join("births.lock").exists());
        fs::remove_dir(target.join("abc")).expect("remove");
        remove_if_unused(&link);
        assert!(!target.exists() && fs::symlink_metadata(&link).is_err());
    }

    #[test]
    fn a_folder_that_others_can_enter_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let foreign = folder.path().join("theirs");
        fs::create_dir(&foreign).expect("make");
        fs::set_permissions(&foreign, fs::Permissions::from_mode(0o755)).expect("open it");
        assert!(make_own(&foreign).is_err());
        let link = folder.path().join("link");
        symlink(&foreign, &link).expect("link");
        assert!(make_own(&link).is_err());
    }
}
