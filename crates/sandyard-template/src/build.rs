//! Writes files, directories and links into a layer. Links in the path never lead out of it.

use std::cell::RefCell;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, chmodat, fchmod, fstat, ioctl_ficlone, openat, symlinkat,
};
use rustix::io::Errno;

use crate::budget::Counts;
use crate::copy::{Owners, chown_fd, chown_name};
use crate::error::{OperationExt, Result, TemplateError};
use crate::lookup::{Entry, Folder, TemplateLookup};
use crate::manifest::Template;
use crate::target::{EntryTarget, Parents, clear_name, make_directory, split};
use crate::tree::{Tree, stat_entry};

/// Owner inside: user and group have the same number for all we make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner(pub(crate) u32, pub(crate) u32);

/// The sandbox's root.
pub(crate) const ROOT: Owner = Owner(0, 0);

/// Builds into one layer. Paths are as inside, with or without the leading slash.
#[derive(Debug)]
pub(crate) struct Builder<'a> {
    root: &'a Tree,
    /// The layers below, which are seen and not changed.
    below: Option<RefCell<TemplateLookup<'a>>>,
    owners: Owners,
    parents: Parents<'a>,
    counts: Counts,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(root: &'a Tree, owners: Owners) -> Self {
        Self {
            root,
            below: None,
            owners,
            parents: Parents::new(root),
            counts: Counts::default(),
        }
    }

    /// The same on top of the layers of `template`.
    pub(crate) fn above(self, template: &'a Template) -> Self {
        let below = Some(RefCell::new(TemplateLookup::new(template)));
        Self { below, ..self }
    }

    /// Makes a directory, or changes the attributes of an existing one. Anything else of that name is removed.
    pub(crate) fn dir(&mut self, path: &str, mode: u32, owner: Owner) -> Result<()> {
        self.at(path, |target, owners, counts| {
            make_directory(target)?;
            chown_name(&target.dir, &target.name, owner.0, owner.1, owners, counts)?;
            // The name is a directory, made or seen just now, and nobody else writes here.
            chmodat(
                &target.dir,
                &target.name,
                Mode::from_raw_mode(mode),
                AtFlags::empty(),
            )
        })
    }

    /// Makes a file, replacing what is there.
    pub(crate) fn file(
        &mut self,
        path: &str,
        text: impl AsRef<[u8]>,
        mode: u32,
        owner: Owner,
    ) -> Result<()> {
        self.write(path, mode, owner, |file| file.write_all(text.as_ref()))
    }

    /// Installs a program of the host.
    pub(crate) fn install(&mut self, path: &str, program: &Path, mode: u32) -> Result<()> {
        let mut source =
            File::open(program).operation(|| format!("open `{}`", program.display()))?;
        self.write(path, mode, ROOT, |file| {
            if ioctl_ficlone(&*file, &source).is_ok() {
                return Ok(());
            }
            std::io::copy(&mut source, file).map(drop)
        })
    }

    /// Makes a symbolic link, replacing what is there.
    pub(crate) fn link(&mut self, path: &str, link: impl AsRef<Path>) -> Result<()> {
        self.at(path, |target, owners, counts| {
            clear_name(target)?;
            symlinkat(link.as_ref(), &target.dir, &target.name)?;
            chown_name(&target.dir, &target.name, 0, 0, owners, counts)
        })
    }

    /// Says whether the path exists, following links inside the layer.
    pub(crate) fn exists(&self, path: &str) -> bool {
        self.root
            .open_in_root(Path::new(path), OFlags::PATH)
            .is_ok()
            || !matches!(
                self.find_below(path),
                Ok(None | Some(Entry::Nothing)) | Err(_)
            )
    }

    fn find_below(&self, path: &str) -> Result<Option<Entry>> {
        let Some(below) = &self.below else {
            return Ok(None);
        };
        Ok(below
            .borrow_mut()
            .find(Path::new(path))?
            .map(|found| found.entry))
    }

    /// Says whether the name itself is a directory of this layer, not a link to one.
    pub(crate) fn is_real_dir(&self, path: &str) -> bool {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        self.root.open_in_root(Path::new(path), flags).is_ok()
    }

    /// Reads a file of at most `limit` bytes; `None` when there is no such file.
    pub(crate) fn read(&self, path: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        let reading = || format!("read `{path}` of the layer");
        // Non-blocking, because a pipe of that name would block for ever.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = match self.root.open_in_root(Path::new(path), flags) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => {
                return match self.find_below(path)? {
                    Some(Entry::File(file)) => file
                        .read(limit)?
                        .map_or(Err(too_large(limit)), |bytes| Ok(Some(bytes))),
                    _ => Ok(None),
                };
            }
            Err(error) => return Err(error).operation(reading),
        };
        let stat = fstat(&file).operation(reading)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        File::from(file)
            .take(limit + 1)
            .read_to_end(&mut bytes)
            .operation(reading)?;
        if bytes.len() as u64 > limit {
            return Err(too_large(limit));
        }
        Ok(Some(bytes))
    }

    fn write(
        &mut self,
        path: &str,
        mode: u32,
        owner: Owner,
        fill: impl FnOnce(&mut File) -> std::io::Result<()>,
    ) -> Result<()> {
        let mut made = None;
        self.at(path, |target, _, _| {
            clear_name(target)?;
            let flags =
                OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            made = Some(openat(
                &target.dir,
                &target.name,
                flags,
                Mode::RUSR | Mode::WUSR,
            )?);
            Ok(())
        })?;
        let writing = || format!("write `{path}` of the layer");
        let mut file = File::from(made.ok_or(Errno::NOENT).operation(writing)?);
        fill(&mut file).operation(writing)?;
        chown_fd(&file, owner.0, owner.1, self.owners, &mut self.counts).operation(writing)?;
        fchmod(&file, Mode::from_raw_mode(mode)).operation(writing)
    }

    fn at(
        &mut self,
        path: &str,
        make: impl FnOnce(&EntryTarget, Owners, &mut Counts) -> Result<(), Errno>,
    ) -> Result<()> {
        let making = || format!("make `{path}` in the layer");
        let (parent, name) = split(path.as_bytes())
            .ok_or(Errno::INVAL)
            .operation(making)?;
        let parent = self.make_parents(parent)?;
        let target = self.parents.open(parent, name).operation(making)?;
        make(&target, self.owners, &mut self.counts).operation(making)?;
        self.parents.cache(target);
        Ok(())
    }

    /// Makes those directories of the way to `folder` that only the layers below have, as they are there. Returns where it leads.
    fn make_parents(&mut self, folder: PathBuf) -> Result<PathBuf> {
        let Some(below) = &self.below else {
            return Ok(folder);
        };
        let Some(found) = below.borrow_mut().find(&Path::new("/").join(&folder))? else {
            return Ok(folder);
        };
        for Folder {
            path,
            mode,
            uid,
            gid,
        } in found.folders
        {
            let Some((parent, name)) = split(path.as_os_str().as_bytes()) else {
                continue;
            };
            let making = || format!("make `{}` in the layer", path.display());
            let target = self.parents.open(parent, name).operation(making)?;
            if stat_entry(&target.dir, &target.name)
                .operation(making)?
                .is_some()
            {
                continue;
            }
            make_directory(&target)
                .and_then(|()| {
                    chown_name(
                        &target.dir,
                        &target.name,
                        uid,
                        gid,
                        self.owners,
                        &mut self.counts,
                    )
                })
                .and_then(|()| {
                    chmodat(
                        &target.dir,
                        &target.name,
                        Mode::from_raw_mode(mode),
                        AtFlags::empty(),
                    )
                })
                .operation(making)?;
        }
        Ok(found.path.strip_prefix("/").map_or(folder, Path::to_owned))
    }
}

fn too_large(limit: u64) -> TemplateError {
    TemplateError::LimitExceeded {
        what: "bytes in an account file",
        limit,
    }
}
