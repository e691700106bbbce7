//! Changing files: the one place where content is written.
//!
//! Every tool that changes text reads it with [`read`], writes it with [`write_atomically`] while it holds the [`turn`], and
//! tells what it did with `diff`.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::open::{check, failed, flags, open};
use crate::reply::Problem;

/// Largest file that is changed as text.
pub(crate) const MAX_CHANGED: u64 = 16 * 1024 * 1024;

/// Two changes of a file at once would lose one of them.
static IS_TAKEN: Mutex<bool> = Mutex::new(false);
static IS_FREE: Condvar = Condvar::new();
/// How long the one before may take: a file system that hangs must not take every thread there is. Tests share a process, and
/// many of them wait in this line.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 120 } else { 10 });

/// The right to change files; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Turn(());

impl Drop for Turn {
    fn drop(&mut self) {
        *IS_TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = false;
        IS_FREE.notify_one();
    }
}

/// To be held from before a file is read until it is written.
pub(crate) fn turn() -> Result<Turn, Problem> {
    turn_within(PATIENCE)
}

fn turn_within(patience: Duration) -> Result<Turn, Problem> {
    let is_taken = IS_TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = IS_FREE.wait_timeout_while(is_taken, patience, |is_taken| *is_taken);
    let (mut is_taken, _) = waited.unwrap_or_else(PoisonError::into_inner);
    if *is_taken {
        return Err(Problem::new(
            "another change is still being written: try again in a minute",
        ));
    }
    *is_taken = true;
    Ok(Turn(()))
}

/// The whole text of a file that is to be changed; none if there is no such file.
pub(crate) fn read(path: &Path) -> Result<Option<String>, Problem> {
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
            "{} has {} bytes, and at most {MAX_CHANGED} are changed here: use a command (sed, python3) for it",
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

/// Writes a file as a whole: whoever reads it sees the old content or the new, never a part.
///
/// The path is one that [`Workspace::resolve`](crate::workspace::Workspace::resolve) gave. Missing folders are made; mode and
/// owner of a file that is there stay as they are.
pub(crate) fn write_atomically(path: &Path, text: &str) -> Result<(), Problem> {
    write_like(path, text, None)
}

/// The same for a file that is moved: with the mode of the one it was.
pub(super) fn write_like(
    path: &Path,
    text: &str,
    moved_from: Option<&Metadata>,
) -> Result<(), Problem> {
    let parent = path
        .parent()
        .ok_or_else(|| Problem::new("the path is a folder: name a file in it"))?;
    fs::create_dir_all(parent).map_err(|error| failed(parent, "made", &error))?;
    let old = existing(path)?;
    let like = old.as_ref().or(moved_from);
    match replace(parent, path, text, like) {
        Ok(()) => Ok(()),
        // A folder that only its owner writes to, or a file of somebody else: its content may be ours to change all the same.
        Err(error) if old.is_some() && error.kind() == io::ErrorKind::PermissionDenied => {
            overwrite(path, text).map_err(|error| failed(path, "written", &error))
        }
        Err(error) => Err(failed(path, "written", &error)),
    }
}

/// What is there already, if it may be written.
fn existing(path: &Path) -> Result<Option<Metadata>, Problem> {
    match path.symlink_metadata() {
        Ok(metadata) => check(path, metadata.file_type())?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(path, "looked at", &error)),
    }
    // Replacing a file needs no right to write to it; we want to have it.
    let file = OpenOptions::new()
        .write(true)
        .custom_flags(flags())
        .open(path)
        .map_err(|error| failed(path, "written", &error))?;
    let metadata = file
        .metadata()
        .map_err(|error| failed(path, "looked at", &error))?;
    check(path, metadata.file_type())?;
    Ok(Some(metadata))
}

fn replace(parent: &Path, path: &Path, text: &str, like: Option<&Metadata>) -> io::Result<()> {
    let (mut file, temporary) = Temporary::new(parent, like)?;
    file.write_all(text.as_bytes())?;
    if let Some(like) = like {
        let is = file.metadata()?;
        if (is.uid(), is.gid()) != (like.uid(), like.gid()) {
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

/// A file beside the one that is to be, removed unless it is kept.
pub(super) struct Temporary {
    /// Where it is.
    pub(super) path: PathBuf,
    is_kept: bool,
}

impl Temporary {
    /// A name nobody has.
    pub(super) fn name(parent: &Path) -> PathBuf {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        parent.join(format!(".sandyard-{}-{count}.tmp", std::process::id()))
    }

    /// For a file that is to be like another one. Until it has that one's owner and mode, it is nobody else's to read; a new
    /// file has the usual mode from the beginning.
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
                // Left behind by somebody with our number.
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
            // It is of no use to anybody, but does no harm either.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_hangs_does_not_hang_the_others() {
        // Other tests change files too, which takes a moment only.
        let held = turn().unwrap();
        let problem = turn_within(Duration::ZERO).unwrap_err();
        assert!(problem.to_string().contains("still being written"));
        drop(held);
        assert!(turn().is_ok());
    }

    #[test]
    fn what_will_be_private_is_private_from_the_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        let path = folder.path().join("new");
        write_atomically(&path, "new").unwrap();
        let usual = folder.path().join("usual");
        fs::write(&usual, "as anybody makes it").unwrap();
        assert_eq!(mode(&path), mode(&usual));
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
