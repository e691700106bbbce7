//! The log of a background program: a file in the sandbox, so that output needs no memory of the agent.
//!
//! The file and the one before it, `….log.1`, hold at most [`MAX_BYTES`] each. A new start begins a new file.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{FileType, Gid, Mode, OFlags, Uid};

use crate::fs;

/// Maximum size of one file, in bytes.
const MAX_BYTES: usize = 1024 * 1024;

/// A bounded log; clones write to the same file. Output that cannot be written is lost.
#[derive(Debug, Clone)]
pub(crate) struct Log(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    /// `None`: all output is discarded.
    path: Option<PathBuf>,
    /// The user and group that may read it, besides root.
    owner: Option<(u32, u32)>,
    open: RefCell<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    file: OwnedFd,
    size: usize,
}

impl Log {
    /// Begins a new file; the existing one is renamed to `….log.1`.
    pub(crate) fn open(path: impl Into<Option<PathBuf>>, owner: Option<(u32, u32)>) -> Self {
        let path = path.into();
        let open = path.as_deref().and_then(|path| begin(path, owner));
        Self(Rc::new(Inner {
            path,
            owner,
            open: RefCell::new(open),
        }))
    }

    /// Appends the program's output.
    pub(crate) fn write(&self, bytes: &[u8]) {
        let mut open = self.0.open.borrow_mut();
        for piece in bytes.chunks(MAX_BYTES) {
            let is_full = |open: &Open| open.size + piece.len() > MAX_BYTES;
            if open.as_ref().is_some_and(is_full) {
                let path = self.0.path.as_deref();
                *open = path.and_then(|path| begin(path, self.0.owner));
            }
            if let Some(open) = open.as_mut() {
                open.size += piece.len();
                // With a full disk the output is lost.
                let _ = fs::write_all(&open.file, piece);
            }
        }
    }

    /// Appends a line of the agent's.
    pub(crate) fn note(&self, line: &str) {
        self.write(format!("sandyard: {line}\n").as_bytes());
    }
}

fn begin(path: &Path, owner: Option<(u32, u32)>) -> Option<Open> {
    if let Some(folder) = path.parent() {
        // It usually exists.
        let _ = rustix::fs::mkdir(folder, Mode::from_raw_mode(0o755));
    }
    let mut before = path.as_os_str().to_owned();
    before.push(".1");
    // Fails when there was none. A symbolic link itself is renamed, not its target.
    let _ = rustix::fs::rename(path, PathBuf::from(before));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    let always = OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags | always, Mode::RUSR | Mode::WUSR).ok()?;
    let kind = rustix::fs::fstat(&file).ok()?.st_mode;
    if FileType::from_raw_mode(kind) != FileType::RegularFile {
        return None;
    }
    if let Some((uid, gid)) = owner {
        // Where the ids are not mapped, the agent stays the owner.
        let _ = rustix::fs::fchown(&file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
    }
    Some(Open { file, size: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_and_the_one_before_it_are_bounded() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let log = Log::open(path.clone(), None);
        for _ in 0..5 {
            log.write(&vec![b'x'; MAX_BYTES / 2 + 1]);
        }
        log.write(b"last");
        let size = |path: &Path| std::fs::metadata(path).expect("a file").len();
        assert_eq!(size(&path), MAX_BYTES as u64 / 2 + 5);
        assert!(size(&folder.path().join("log.1")) <= MAX_BYTES as u64);
        assert_eq!(std::fs::read_dir(folder.path()).expect("list").count(), 2);
    }

    #[test]
    fn a_new_start_keeps_the_log_of_the_one_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        Log::open(path.clone(), None).note("first");
        Log::open(path.clone(), None).note("second");
        let read = |path: &Path| std::fs::read_to_string(path).expect("read");
        assert_eq!(read(&path), "sandyard: second\n");
        assert_eq!(read(&folder.path().join("log.1")), "sandyard: first\n");
    }

    #[test]
    fn an_existing_file_is_renamed_and_output_that_cannot_be_written_is_lost() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        std::os::unix::fs::symlink("/dev/full", &path).expect("link");
        Log::open(path.clone(), None).note("one");
        assert_eq!(
            std::fs::read_to_string(&path).expect("read"),
            "sandyard: one\n"
        );
        std::fs::create_dir(folder.path().join("log.1")).unwrap_or_default();
        Log::open(PathBuf::from("/proc/no/such/log"), None).note("lost");
    }
}
