//! Writing files. Every tool that writes content uses this module.
//!
//! A tool takes [`lock_changes`], reads the text with [`read`], writes it with [`write_atomically`] and reports the `diff`.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::open::{check, failed, flags, open};
use crate::reply::{Problem, Result};

/// Maximum size of a file that is changed as text, in bytes.
pub(crate) const MAX_CHANGED: u64 = 16 * 1024 * 1024;

/// Whether a change is in progress. Two changes of a file at the same time would lose one of them.
static IS_LOCKED: Mutex<bool> = Mutex::new(false);
static UNLOCKED: Condvar = Condvar::new();
/// How long to wait for the previous change: a file system that hangs must not block every thread. Longer in tests, which share a
/// process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 120 } else { 10 });

/// The lock for changing files.
#[derive(Debug)]
pub(crate) struct ChangeLock(());

impl Drop for ChangeLock {
    fn drop(&mut self) {
        *IS_LOCKED.lock() = false;
        UNLOCKED.notify_one();
    }
}

/// Locks changes. Hold the lock from before a file is read until it is written.
pub(crate) fn lock_changes() -> Result<ChangeLock> {
    lock_within(LOCK_TIMEOUT)
}

fn lock_within(timeout: Duration) -> Result<ChangeLock> {
    let mut is_locked = IS_LOCKED.lock();
    UNLOCKED.wait_while_for(&mut is_locked, |is_locked| *is_locked, timeout);
    if *is_locked {
        return Err(Problem::new(
            "another change is still being written: try again in a minute",
        ));
    }
    *is_locked = true;
    Ok(ChangeLock(()))
}

/// The text of a file to change; none if it does not exist.
pub(crate) fn read(path: &Path) -> Result<Option<String>> {
    if matches!(path.symlink_metadata(), Err(error) if error.kind() == io::ErrorKind::NotFound) {
        return Ok(None);
    }
    let (file, metadata) = open(path)?;
    let mut bytes = Vec::new();
    file.take(MAX_CHANGED + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| failed(path, "read", &error))?;
    if bytes.len() as u64 > MAX_CHANGED {
        return Err(Problem::new(format!(
            "{} has {} bytes, the maximum for this tool is {MAX_CHANGED}: use a command (sed, python3)",
            path.display(),
            metadata.len()
        )));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| {
        Problem::new(format!(
            "{} is not UTF-8 text: use a command (sed, python3, iconv) to change it",
            path.display()
        ))
    })
}

/// Writes a file atomically: readers see the old content or the new content, never a part.
///
/// The path comes from [`Workspace::resolve`](crate::workspace::Workspace::resolve). Missing folders are created. An existing file
/// keeps its mode and owner.
pub(crate) fn write_atomically(path: &Path, text: &str) -> Result<()> {
    write_with_mode_of(path, text, None)
}

/// Writes a file that is moved, with the mode of the original.
pub(super) fn write_with_mode_of(
    path: &Path,
    text: &str,
    moved_from: Option<&Metadata>,
) -> Result<()> {
    let parent = path
        .parent()
        .ok_or_else(|| Problem::new("the path is a folder: give the path of a file in it"))?;
    fs::create_dir_all(parent).map_err(|error| failed(parent, "created", &error))?;
    let old = existing(path)?;
    let like = old.as_ref().or(moved_from);
    match replace(parent, path, text, like) {
        Ok(()) => Ok(()),
        // The folder is not writable, or the file belongs to another user. The file itself may still be writable.
        Err(error) if old.is_some() && error.kind() == io::ErrorKind::PermissionDenied => {
            overwrite(path, text).map_err(|error| failed(path, "written", &error))
        }
        Err(error) => Err(failed(path, "written", &error)),
    }
}

/// The metadata of the file, if it exists and is writable.
fn existing(path: &Path) -> Result<Option<Metadata>> {
    match path.symlink_metadata() {
        Ok(metadata) => check(path, metadata.file_type())?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(path, "accessed", &error)),
    }
    // Replacing a file does not need write permission for it, so check that.
    let file = OpenOptions::new()
        .write(true)
        .custom_flags(flags())
        .open(path)
        .map_err(|error| failed(path, "written", &error))?;
    let metadata = file
        .metadata()
        .map_err(|error| failed(path, "accessed", &error))?;
    check(path, metadata.file_type())?;
    Ok(Some(metadata))
}

fn replace(parent: &Path, path: &Path, text: &str, like: Option<&Metadata>) -> io::Result<()> {
    let (mut file, temporary) = Temporary::new(parent, like)?;
    file.write_all(text.as_bytes())?;
    if let Some(like) = like {
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (like.uid(), like.gid()) {
            fchown(&file, Some(like.uid()), Some(like.gid()))?;
        }
        file.set_permissions(fs::Permissions::from_mode(like.mode() & 0o7777))?;
    }
    drop(file);
    fs::rename(&temporary.path, path)?;
    temporary.keep();
    Ok(())
}

fn overwrite(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .truncate(true)
        .custom_flags(flags())
        .open(path)?;
    file.write_all(text.as_bytes())
}

/// A temporary file next to the target, removed unless it is kept.
pub(super) struct Temporary {
    /// Its path.
    pub(super) path: PathBuf,
    is_kept: bool,
}

impl Temporary {
    /// A unique name.
    pub(super) fn name(parent: &Path) -> PathBuf {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        parent.join(format!(".sandyard-{}-{count}.tmp", std::process::id()))
    }

    /// Creates a temporary file. If it replaces a file, other users cannot read it until it has that file's owner and mode. A new
    /// file has the default mode.
    fn new(parent: &Path, like: Option<&Metadata>) -> io::Result<(File, Self)> {
        let mode = if like.is_some() { 0o600 } else { 0o666 };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(mode);
        loop {
            let path = Self::name(parent);
            match options.open(&path) {
                Ok(file) => {
                    let is_kept = false;
                    return Ok((file, Self { path, is_kept }));
                }
                // A leftover of an earlier process with our ID.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_a_change_times_out() {
        // Other tests change files too, for a moment.
        let held = lock_changes().unwrap();
        let problem = lock_within(Duration::ZERO).unwrap_err();
        assert!(problem.to_string().contains("still being written"));
        drop(held);
        assert!(lock_changes().is_ok());
    }

    #[test]
    fn a_replaced_private_file_is_never_readable_by_others() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        let path = folder.path().join("new");
        write_atomically(&path, "new").unwrap();
        let default = folder.path().join("usual");
        fs::write(&default, "with the default mode").unwrap();
        assert_eq!(mode(&path), mode(&default));
        for private in [0o600, 0o640, 0o444] {
            fs::set_permissions(&path, fs::Permissions::from_mode(private)).unwrap();
            let like = path.metadata().unwrap();
            let (file, temporary) = Temporary::new(folder.path(), Some(&like)).unwrap();
            assert_eq!(mode(&temporary.path), 0o600);
            drop((file, temporary));
            fs::set_permissions(&path, fs::Permissions::from_mode(private | 0o200)).unwrap();
            write_atomically(&path, "changed").unwrap();
            assert_eq!(mode(&path), private | 0o200);
        }
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            2,
            "nothing is left"
        );
    }
}
