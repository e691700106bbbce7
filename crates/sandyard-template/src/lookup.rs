//! Looks up a path in a template: merges its parts and layers as overlayfs does, and follows links as in a sandbox.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, openat, readlinkat};
use rustix::io::Errno;

use crate::error::{OperationExt, Result};
use crate::manifest::{Part, Template};
use crate::merged::{MergedDir, MergedEntry};
use crate::tree::Tree;

/// Maximum number of links in a path, as in the kernel.
const MAX_LINKS: usize = 40;

/// Looks up paths in a template. Opens layers when they are needed, and caches directories.
#[derive(Debug)]
pub struct TemplateLookup<'a> {
    parts: &'a [Part],
    trees: Vec<Option<Vec<Tree>>>,
    cache: HashMap<PathBuf, Level>,
}

/// The result of a lookup.
#[derive(Debug)]
pub struct ResolvedPath {
    /// Index of the template's part that it is in.
    pub part: usize,
    /// The path inside, with links resolved.
    pub path: PathBuf,
    /// Its existing parent directories in that part, from the top, and itself if it is a directory.
    pub folders: Vec<Folder>,
    /// What is at the path.
    pub entry: Entry,
}

/// A directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// Its path inside.
    pub path: PathBuf,
    /// Its permissions.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

/// What is at a path.
#[derive(Debug)]
pub enum Entry {
    /// The path does not exist.
    Nothing,
    /// A directory.
    Folder,
    /// A file.
    File(LayerFile),
    /// A pipe, a socket or a device.
    Other,
}

/// A file of a layer.
#[derive(Debug)]
pub struct LayerFile {
    stat: Stat,
    holder: OwnedFd,
    name: OsString,
}

impl LayerFile {
    /// Numbers that identify the file and change when it changes.
    pub fn identity(&self) -> [u64; 5] {
        let stat = &self.stat;
        let nanoseconds =
            |seconds: i64, rest: u64| (seconds as u64).wrapping_mul(1_000_000_000) + rest;
        [
            stat.st_dev,
            stat.st_ino,
            stat.st_size as u64,
            nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
            nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
        ]
    }

    /// Its content; `None` if it is longer than `max_bytes` bytes.
    ///
    /// # Errors
    /// When it cannot be read, or is no longer a file.
    pub fn read(&self, max_bytes: u64) -> Result<Option<Vec<u8>>> {
        let reading = || format!("read `{}` of a template", self.name.display());
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.holder, &self.name, flags, Mode::empty()).operation(reading)?;
        let stat = fstat(&file).operation(reading)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Errno::INVAL).operation(reading);
        }
        let mut bytes = Vec::new();
        let mut rest = std::fs::File::from(file).take(max_bytes + 1);
        rest.read_to_end(&mut bytes).operation(reading)?;
        Ok((bytes.len() as u64 <= max_bytes).then_some(bytes))
    }
}

/// A directory of the path.
#[derive(Clone, Debug)]
struct Level {
    part: usize,
    /// Its path inside.
    path: PathBuf,
    /// Its path in the part.
    rel: PathBuf,
    /// The layers of the part that it is made of.
    layers: Vec<usize>,
    /// What it is, unless a part begins here.
    folder: Option<Folder>,
}

impl<'a> TemplateLookup<'a> {
    /// Reads nothing yet.
    pub fn new(template: &'a Template) -> Self {
        Self {
            parts: &template.parts,
            trees: template.parts.iter().map(|_| None).collect(),
            cache: HashMap::new(),
        }
    }

    /// Looks up `path`. `None`: a component of the path is not a directory.
    ///
    /// # Errors
    /// When a layer cannot be read.
    pub fn find(&mut self, path: &Path) -> Result<Option<ResolvedPath>> {
        let Some(root) = self.top_of_part(Path::new("/")) else {
            return Ok(None);
        };
        let finding = || format!("find `{}` in a template", path.display());
        let mut stack = vec![root];
        let mut ahead = names(path);
        ahead.reverse();
        let mut links = 0;
        while let Some(name) = ahead.pop() {
            if name == ".." {
                stack.truncate((stack.len() - 1).max(1));
                continue;
            }
            let here = stack.last().expect("the root stays");
            let path = here.path.join(&name);
            if let Some(level) = self.level(&path) {
                stack.push(level);
                continue;
            }
            let dir = MergedDir::open(self.trees(here.part)?, &here.layers, &here.rel);
            let dir = dir.operation(finding)?;
            let Some(entry) = dir.lookup(&name).operation(finding)? else {
                let plain = ahead.iter().all(|name| name != "..");
                let mut whole = path;
                whole.extend(ahead.iter().rev());
                return Ok(plain.then(|| resolved(&stack, whole, Entry::Nothing)));
            };
            match FileType::from_raw_mode(entry.stat.st_mode) {
                FileType::Symlink => {
                    links += 1;
                    let holder = dir.holder(&entry).expect("found there");
                    let target = readlinkat(holder, &name, Vec::new()).operation(finding)?;
                    let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                    if links > MAX_LINKS {
                        return Ok(None);
                    }
                    if target.is_absolute() {
                        stack.truncate(1);
                    }
                    ahead.extend(names(&target).into_iter().rev());
                }
                FileType::Directory => {
                    let level = here.below(&name, &path, entry);
                    self.cache.insert(path, level.clone());
                    stack.push(level);
                }
                _ if !ahead.is_empty() => return Ok(None),
                FileType::RegularFile => {
                    let stat = entry.stat;
                    let holder = dir.into_holder(&entry).expect("found there");
                    let file = LayerFile { stat, holder, name };
                    return Ok(Some(resolved(&stack, path, Entry::File(file))));
                }
                _ => return Ok(Some(resolved(&stack, path, Entry::Other))),
            }
        }
        let path = stack.last().expect("the root stays").path.clone();
        Ok(Some(resolved(&stack, path, Entry::Folder)))
    }

    /// The directory at `path`, if it is the top of a part or cached.
    fn level(&self, path: &Path) -> Option<Level> {
        let cached = self.cache.get(path).cloned();
        self.top_of_part(path).or(cached)
    }

    /// The top of the part that is mounted at `path`, if there is one.
    fn top_of_part(&self, path: &Path) -> Option<Level> {
        let part = self.parts.iter().position(|part| part.target == path)?;
        Some(Level {
            part,
            path: path.to_owned(),
            rel: PathBuf::new(),
            layers: (0..self.parts[part].layers.len()).collect(),
            folder: None,
        })
    }

    fn trees(&mut self, part: usize) -> Result<&[Tree]> {
        let trees = &mut self.trees[part];
        if trees.is_none() {
            let layers = self.parts[part].layers.iter();
            let opened: Result<Vec<_>, _> = layers.map(|layer| Tree::open(layer)).collect();
            *trees = Some(opened?);
        }
        Ok(trees.as_deref().unwrap_or_default())
    }
}

impl Level {
    /// The directory `name` in this one, of the same part.
    fn below(&self, name: &OsStr, path: &Path, entry: MergedEntry) -> Self {
        Self {
            part: self.part,
            path: path.to_owned(),
            rel: self.rel.join(name),
            layers: entry.layers,
            folder: Some(Folder {
                path: path.to_owned(),
                mode: entry.stat.st_mode & 0o7777,
                uid: entry.stat.st_uid,
                gid: entry.stat.st_gid,
            }),
        }
    }
}

/// The components of a path, without `/` and `.`.
fn names(path: &Path) -> Vec<OsString> {
    let named = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    });
    named.collect()
}

fn resolved(stack: &[Level], path: PathBuf, entry: Entry) -> ResolvedPath {
    let part = stack.last().map_or(0, |level| level.part);
    let own = stack.iter().rev().take_while(|level| level.part == part);
    let mut folders: Vec<_> = own.filter_map(|level| level.folder.clone()).collect();
    folders.reverse();
    ResolvedPath {
        part,
        path,
        folders,
        entry,
    }
}
