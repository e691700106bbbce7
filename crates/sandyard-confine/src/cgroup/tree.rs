//! One mounted hierarchy: what it can do for us, and its control files.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{Access, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::CgroupError;
use super::mounts::Mount;
use crate::cgroup::Result;

/// The jobs a tree can do. For each job [`super::Hierarchy`] leaves the flag set in one tree only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Jobs {
    pub(super) memory: bool,
    pub(super) cpu: bool,
    pub(super) cpu_time: bool,
    pub(super) pids: bool,
    pub(super) freeze: bool,
    pub(super) kill: bool,
    pub(super) devices: bool,
}

/// A hierarchy in which groups can be made below `base`.
#[derive(Debug)]
pub(super) struct Tree {
    /// Kept open so that each access is one short relative walk.
    base: OwnedFd,
    /// For messages only.
    path: PathBuf,
    prefix: String,
    pub(super) is_v2: bool,
    pub(super) jobs: Jobs,
}

impl Tree {
    /// Opens `base` if groups can really be made there, which is found out by making one.
    pub(super) fn open(mount: &Mount, base: &Path, prefix: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut tree = Self {
            base: rustix::fs::open(base, flags, Mode::empty())?,
            path: base.to_owned(),
            prefix: prefix.to_owned(),
            is_v2: mount.v1.is_none(),
            jobs: Jobs::default(),
        };
        if tree.is_v2 {
            // Moving a process needs this file of the common ancestor, which for our own children is the base or above.
            rustix::fs::accessat(
                &tree.base,
                "cgroup.procs",
                Access::WRITE_OK,
                AtFlags::EACCESS,
            )?;
        }
        let probe = probe_name(prefix);
        rustix::fs::mkdirat(&tree.base, &probe, Mode::from_raw_mode(0o755))?;
        let jobs = match &mount.v1 {
            None => tree.jobs_v2(&probe),
            Some(controllers) => jobs_v1(controllers),
        };
        rustix::fs::unlinkat(&tree.base, &probe, AtFlags::REMOVEDIR)?;
        tree.jobs = jobs;
        Ok(tree)
    }

    fn jobs_v2(&self, probe: &str) -> Jobs {
        let has = |file: &str| {
            rustix::fs::accessat(
                &self.base,
                format!("{probe}/{file}"),
                Access::EXISTS,
                AtFlags::empty(),
            )
            .is_ok()
        };
        let available = self.read_at("cgroup.controllers").unwrap_or_default();
        let enabled = self.read_at("cgroup.subtree_control").unwrap_or_default();
        let can_enable = rustix::fs::accessat(
            &self.base,
            "cgroup.subtree_control",
            Access::WRITE_OK,
            AtFlags::EACCESS,
        )
        .is_ok();
        let controller = |name: &str| {
            contains_word(&enabled, name) || (can_enable && contains_word(&available, name))
        };
        Jobs {
            memory: controller("memory"),
            cpu: controller("cpu"),
            // The core counts processor time even where no cpu controller is enabled.
            cpu_time: has("cpu.stat"),
            pids: controller("pids"),
            freeze: has("cgroup.freeze"),
            kill: has("cgroup.kill"),
            devices: false,
        }
    }

    pub(super) fn base(&self) -> &OwnedFd {
        &self.base
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) fn base_path(&self) -> &Path {
        &self.path
    }

    /// Gives the path of a group's directory or file for a message.
    pub(super) fn display_path(&self, relative: &str) -> PathBuf {
        self.path.join(relative)
    }

    /// Gives the relative path of a sandbox's group.
    pub(super) fn group(&self, name: &str) -> String {
        format!("{}/{name}", self.prefix)
    }

    pub(super) fn make(&self, relative: &str) -> Result<()> {
        rustix::fs::mkdirat(&self.base, relative, Mode::from_raw_mode(0o755)).map_err(|errno| {
            CgroupError::Make {
                path: self.display_path(relative),
                source: errno.into(),
            }
        })
    }

    /// Removes an empty group. A missing one counts as removed.
    pub(super) fn remove_dir(&self, relative: &str) -> Result<(), Errno> {
        match rustix::fs::unlinkat(&self.base, relative, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    pub(super) fn exists(&self, relative: &str) -> bool {
        rustix::fs::accessat(&self.base, relative, Access::EXISTS, AtFlags::empty()).is_ok()
    }

    /// Writes a control file in one write, as the kernel wants it.
    pub(super) fn write(&self, relative: &str, value: &str) -> Result<()> {
        self.write_at(relative, value)
            .map_err(|errno| CgroupError::Write {
                path: self.display_path(relative),
                value: value.to_owned(),
                source: errno.into(),
            })
    }

    /// Writes a control file which some kernels do not have.
    pub(super) fn write_if_there(&self, relative: &str, value: &str) -> Result<()> {
        match self.write_at(relative, value) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(CgroupError::Write {
                path: self.display_path(relative),
                value: value.to_owned(),
                source: errno.into(),
            }),
        }
    }

    pub(super) fn write_at(&self, relative: &str, value: &str) -> Result<(), Errno> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.base, relative, flags, Mode::empty())?;
        rustix::io::retry_on_intr(|| rustix::io::write(&file, value.as_bytes())).map(|_| ())
    }

    pub(super) fn read(&self, relative: &str) -> Result<String> {
        self.read_at(relative).map_err(|errno| CgroupError::Read {
            path: self.display_path(relative),
            source: errno.into(),
        })
    }

    pub(super) fn read_at(&self, relative: &str) -> Result<String, Errno> {
        let file = self.open_file(relative)?;
        let mut text = Vec::new();
        let mut chunk = [0_u8; 4096];
        loop {
            match rustix::io::retry_on_intr(|| rustix::io::read(&file, &mut chunk))? {
                0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
                count => text.extend_from_slice(&chunk[..count]),
            }
        }
    }

    pub(super) fn open_file(&self, relative: &str) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.base, relative, flags, Mode::empty())
    }

    /// Lists the groups directly below one; a missing one has none.
    pub(super) fn children(&self, relative: &str) -> Result<Vec<String>> {
        let failed = |errno: Errno| CgroupError::Read {
            path: self.display_path(relative),
            source: errno.into(),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = match rustix::fs::openat(&self.base, relative, flags, Mode::empty()) {
            Ok(dir) => dir,
            Err(Errno::NOENT) => return Ok(Vec::new()),
            Err(errno) => return Err(failed(errno)),
        };
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::new(dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy();
            if entry.file_type() == rustix::fs::FileType::Directory && name != "." && name != ".." {
                names.push(name.into_owned());
            }
        }
        Ok(names)
    }
}

fn jobs_v1(controllers: &[String]) -> Jobs {
    let has = |name: &str| controllers.iter().any(|controller| controller == name);
    Jobs {
        memory: has("memory"),
        cpu: has("cpu"),
        cpu_time: has("cpuacct"),
        pids: has("pids"),
        freeze: has("freezer"),
        kill: false,
        devices: has("devices"),
    }
}

/// Names the group made to find out whether groups can be made; no two callers share one.
fn probe_name(prefix: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}-probe-{}-{number}", std::process::id())
}

pub(super) fn contains_word(text: &str, word: &str) -> bool {
    text.split_ascii_whitespace().any(|other| other == word)
}
