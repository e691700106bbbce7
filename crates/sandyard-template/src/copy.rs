//! Copies a directory tree into a layer, with everything that is visible in a sandbox.
//!
//! The source may be hostile (a sandbox wrote it) and alive (the sandbox may still run): no symbolic link is followed,
//! nothing is opened before its kind is known, what vanishes meanwhile is left out, and depth costs neither stack nor
//! descriptors.

mod attributes;
mod data;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, chmodat, fstat, linkat, mkdirat, mknodat, openat,
    readlinkat, symlinkat,
};
use rustix::io::Errno;

pub(crate) use attributes::{chown_fd, chown_name, set_mtime, set_mtime_name};

use crate::budget::Budget;
use crate::error::{OperationExt, Result, TemplateError};
use crate::overlay;
use crate::tree::{MAX_PATH_BYTES, Tree, for_each_name, stat_entry};
use crate::xattr::Origin;

/// The owners of the files of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owners {
    /// As in the source; needs the capability to change owners.
    Keep,
    /// The user of this process, the only one that exists in a rootless sandbox.
    Current,
}

impl Owners {
    /// What this process can do: keep owners as root with all the ids of a sandbox, else not.
    pub fn of_this_process() -> Self {
        if rustix::process::geteuid().is_root() && attributes::has_all_ids() {
            Self::Keep
        } else {
            Self::Current
        }
    }
}

/// How one tree is copied.
pub(crate) struct Rules<'a> {
    pub(crate) origin: Origin,
    pub(crate) owners: Owners,
    /// Which entries to copy; paths are those inside the tree.
    pub(crate) admit: &'a Admit<'a>,
}

/// Says whether to copy an entry, by its path, its status and, for a link, its target.
pub(crate) type Admit<'a> = dyn Fn(&Path, &Stat, Option<&[u8]>) -> bool + 'a;

/// Admits everything.
pub(crate) fn everything(_: &Path, _: &Stat, _: Option<&[u8]>) -> bool {
    true
}

/// Copies what is in `from`, and the attributes of `from` itself, into the existing directory `to`.
pub(crate) fn copy_tree(
    from: &Tree,
    to: &Tree,
    rules: &Rules<'_>,
    budget: &mut Budget<'_>,
) -> Result<()> {
    let mut copier = Copier {
        from,
        to,
        rules,
        budget,
        links: HashMap::new(),
        data: data::Copier::default(),
    };
    let mut rel = PathBuf::new();
    // One frame per level: the directories still to visit there.
    let mut frames = vec![copier.enter(&rel)?];
    while let Some(frame) = frames.last_mut() {
        if let Some(name) = frame.pop() {
            rel.push(name);
            frames.push(copier.enter(&rel)?);
        } else {
            copier.leave(&rel)?;
            frames.pop();
            rel.pop();
        }
    }
    Ok(())
}

struct Copier<'a, 'b> {
    from: &'a Tree,
    to: &'a Tree,
    rules: &'a Rules<'a>,
    budget: &'a mut Budget<'b>,
    /// Where the first name of an inode with several names went.
    links: HashMap<(u64, u64), PathBuf>,
    data: data::Copier,
}

/// Errors of a live source when an entry was removed or replaced meanwhile.
fn vanished(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::LOOP | Errno::NOTDIR)
}

impl Copier<'_, '_> {
    /// Copies all of a directory but its sub-directories, which it makes and returns.
    fn enter(&mut self, rel: &Path) -> Result<Vec<OsString>> {
        let mut below = Vec::new();
        let from = match self.from.open_dir(rel) {
            Ok(dir) => dir,
            Err(error) if vanished(error) => return Ok(below),
            Err(Errno::XDEV) => {
                self.budget.counts.mounts += 1;
                return Ok(below);
            }
            Err(error) => return Err(self.failed("open", rel, error)),
        };
        let to = self
            .to
            .open_dir(rel)
            .operation(|| format!("open `{}`", self.to.show(rel)))?;
        let mut failure = None;
        let listed = for_each_name::<Errno>(&from, |name| {
            let done = self.entry(&from, &to, rel, name);
            match done {
                Ok(true) => below.push(name.to_owned()),
                Ok(false) => {}
                Err(error) => {
                    failure = Some(error);
                    return Err(Errno::CANCELED);
                }
            }
            Ok(())
        });
        match failure {
            Some(error) => Err(error),
            None => listed
                .map(|()| below)
                .map_err(|error| self.failed("list", rel, error)),
        }
    }

    /// Copies one entry; true for a directory, which is to be visited.
    fn entry(&mut self, from: &OwnedFd, to: &OwnedFd, rel: &Path, name: &OsStr) -> Result<bool> {
        let path = rel.join(name);
        let Some(stat) =
            stat_entry(from, name).map_err(|error| self.failed("look at", &path, error))?
        else {
            return Ok(false);
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let target = match kind {
            FileType::Symlink => match readlinkat(from, name, Vec::new()) {
                Ok(target) => Some(target),
                Err(error) if vanished(error) || error == Errno::INVAL => return Ok(false),
                Err(error) => return Err(self.failed("read link", &path, error)),
            },
            _ => None,
        };
        if !(self.rules.admit)(
            &path,
            &stat,
            target.as_ref().map(|target| target.as_bytes()),
        ) {
            return Ok(false);
        }
        self.budget.entry()?;
        if path.as_os_str().len() > MAX_PATH_BYTES {
            return Err(TemplateError::LimitExceeded {
                what: "bytes in a path",
                limit: MAX_PATH_BYTES as u64,
            });
        }
        let made = match kind {
            FileType::Directory => mkdirat(to, name, Mode::RWXU),
            FileType::RegularFile => return self.file(from, to, &path, name).map(|()| false),
            FileType::Symlink => {
                let target = target.unwrap_or_default();
                symlinkat(target.as_c_str(), to, name)
                    .and_then(|()| self.finish_name(to, name, &stat))
            }
            FileType::Fifo => mknodat(to, name, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
                .and_then(|()| self.finish_name(to, name, &stat))
                // After the owner, and apart from making it, for the umask.
                .and_then(|()| {
                    let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
                    chmodat(to, name, mode, AtFlags::empty())
                }),
            FileType::CharacterDevice
                if self.rules.origin == Origin::Upper && overlay::is_whiteout_node(&stat) =>
            {
                overlay::make_whiteout(to, name)
            }
            FileType::Socket => {
                self.budget.counts.sockets += 1;
                Ok(())
            }
            FileType::CharacterDevice | FileType::BlockDevice => {
                self.budget.counts.devices += 1;
                Ok(())
            }
            _ => {
                self.budget.counts.unknown += 1;
                Ok(())
            }
        };
        made.map_err(|error| self.failed("copy", &path, error))?;
        Ok(kind == FileType::Directory)
    }

    fn file(&mut self, from: &OwnedFd, to: &OwnedFd, path: &Path, name: &OsStr) -> Result<()> {
        // Non-blocking, in case a pipe has replaced the file meanwhile.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let source = match openat(from, name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(error) if vanished(error) || error == Errno::NXIO => return Ok(()),
            Err(error) => return Err(self.failed("open", path, error)),
        };
        let stat = fstat(&source).map_err(|error| self.failed("look at", path, error))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(());
        }
        let inode = (stat.st_dev, stat.st_ino);
        if stat.st_nlink > 1 {
            if let Some(first) = self.links.get(&inode) {
                return self.link(first, to, name);
            }
            self.budget.remember(path.as_os_str().len() + 64)?;
            self.links.insert(inode, path.to_owned());
        }
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let target = openat(to, name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| self.failed("create", path, error))?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        self.data
            .copy(&source, &target, size, self.budget)
            .map_err(|error| error.into_template_error(|error| self.failed("copy", path, error)))?;
        self.finish_fd(&source, &target, &stat)
            .map_err(|error| self.failed("set attributes of", path, error))
    }

    fn link(&self, first: &Path, to: &OwnedFd, name: &OsStr) -> Result<()> {
        let parent = first.parent().unwrap_or(Path::new(""));
        let first_name = first.file_name().unwrap_or_default();
        self.to
            .open_dir(parent)
            .and_then(|dir| linkat(dir, first_name, to, name, AtFlags::empty()))
            .operation(|| format!("link to `{}`", self.to.show(first)))
    }

    /// Gives a directory its attributes once nothing more is written into it.
    fn leave(&mut self, rel: &Path) -> Result<()> {
        let from = match self.from.open_dir(rel) {
            Ok(dir) => dir,
            Err(error) if vanished(error) || error == Errno::XDEV => return Ok(()),
            Err(error) => return Err(self.failed("open", rel, error)),
        };
        let to = self
            .to
            .open_dir(rel)
            .operation(|| format!("open `{}`", self.to.show(rel)))?;
        fstat(&from)
            .and_then(|stat| self.finish_fd(&from, &to, &stat))
            .map_err(|error| self.failed("set attributes of", rel, error))
    }

    fn failed(&self, action: &str, rel: &Path, error: Errno) -> TemplateError {
        TemplateError::Io {
            action: format!("{action} `{}`", self.from.show(rel)),
            source: error.into(),
        }
    }
}
