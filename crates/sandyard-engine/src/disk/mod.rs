//! The disk of a sandbox: what it writes on top of its template.
//!
//! As root, a sparse ext4 image of the limit's size, mounted through a loop device that only the sandbox holds. The limit is hard,
//! deleting is one `unlink` however many files there are, and the kernel detaches everything when the sandbox's processes end.
//! As an ordinary user, a plain folder, which the launcher measures (see its `folder_limits`).
//!
//! All images together may promise more space than the host has. When free space becomes scarce, the launcher bounds how much
//! each image may still grow (see `growth` and the launcher's `disk_watch`).
//!
//! In both: `<part>/upper` and `<part>/work` for every part of the template.

pub(crate) mod blanks;
mod check;
pub(crate) mod growth;
mod image;
pub(crate) mod metadata;
pub(crate) mod reserve_file;
mod space;
mod usage;

pub(crate) use check::Mounted;
pub(crate) use check::mount as mount_checked;
pub(crate) use image::{copy_sparse, format};
pub(crate) use space::{
    Space, check_free_space, check_free_space_for, check_space_to_start, dirty_limit,
    is_nearly_full,
};

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::mount::MountAttrFlags;
use sandyard_template::Template;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::kernel::Kernel;
use crate::layout::{DataDir, SandboxDir};
use crate::mode::Mode;
use crate::sys::OperationExt;

/// Name of an image in its folder.
pub(crate) const IMAGE: &str = "disk.img";

/// Which kind of disk a sandbox has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub(crate) enum DiskRecord {
    /// An image of bounded size.
    Image {
        /// The loop device it was last attached to.
        loop_number: Option<u32>,
    },
    /// A folder on the host's file system.
    Folder,
}

/// A disk that this process can read.
#[derive(Debug)]
pub(crate) enum OpenDisk {
    /// A detached mount.
    Mount(OwnedFd),
    /// A folder.
    Folder(PathBuf),
}

impl OpenDisk {
    /// A path to it, valid in this process while the value lives.
    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Self::Mount(tree) => PathBuf::from(format!("/proc/self/fd/{}", tree.as_raw_fd())),
            Self::Folder(path) => path.clone(),
        }
    }
}

/// Makes the folder of a new sandbox, with an empty disk in it.
pub(crate) fn make(
    data: &DataDir,
    dir: &SandboxDir,
    mode: Mode,
    size_bytes: u64,
) -> Result<DiskRecord> {
    check_free_space(data)?;
    match mode {
        Mode::Root => {
            blanks::take(&data.blanks(), dir.root(), size_bytes)?;
            Ok(DiskRecord::Image { loop_number: None })
        }
        Mode::Subordinate { .. } | Mode::Rootless { .. } => {
            for folder in [dir.root().to_owned(), dir.disk(), dir.stage()] {
                fs::create_dir(&folder).operation("make", folder.display())?;
            }
            Ok(DiskRecord::Folder)
        }
    }
}

/// Opens the disk of a sandbox, attaching its image if it is not attached yet. Also returns what was repaired.
pub(crate) fn open(
    kernel: &dyn Kernel,
    dir: &SandboxDir,
    record: &mut DiskRecord,
) -> Result<(OpenDisk, Option<String>)> {
    let DiskRecord::Image { loop_number } = record else {
        return Ok((OpenDisk::Folder(dir.disk()), None));
    };
    let attributes = MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOATIME;
    let Some(number) = *loop_number else {
        // Never mounted before, so there is nothing to check.
        metadata::allocate(&dir.image());
        let device = kernel.attach_loop(&dir.image())?;
        *loop_number = Some(device.number);
        let tree = kernel.mount_ext4(&device, attributes)?;
        return Ok((OpenDisk::Mount(tree), None));
    };
    let attached = kernel
        .reopen_loop(number, &dir.image())
        .operation("open loop device", number)?;
    let device = match attached {
        Some(device) => device,
        None => {
            metadata::allocate(&dir.image());
            kernel.attach_loop(&dir.image())?
        }
    };
    *loop_number = Some(device.number);
    let Mounted { tree, repair } = check::mount(kernel, &device, attributes)?;
    Ok((OpenDisk::Mount(tree), repair))
}

/// Makes the folders that the overlays of `template` need, if the image was not formatted with them.
pub(crate) fn prepare(disk: &OpenDisk, template: &Template) -> Result<()> {
    let has = |key: &str| matches!(disk, OpenDisk::Mount(_)) && image::USUAL_PARTS.contains(&key);
    for part in template.parts.iter().filter(|part| !has(&part.key)) {
        for folder in ["upper", "work"] {
            let path = disk.path().join(&part.key).join(folder);
            fs::create_dir_all(&path).operation("make", path.display())?;
        }
    }
    Ok(())
}

/// The upper folder of each part of a template on this disk, by the key of the part.
pub(crate) fn upper_dirs(disk: &OpenDisk, template: &Template) -> Vec<(String, PathBuf)> {
    template
        .parts
        .iter()
        .map(|part| (part.key.clone(), disk.path().join(&part.key).join("upper")))
        .collect()
}

/// Bytes that a sandbox uses on the host's disk.
pub(crate) fn used_bytes(dir: &SandboxDir, record: &DiskRecord) -> u64 {
    use std::os::unix::fs::MetadataExt;
    match record {
        DiskRecord::Image { .. } => {
            fs::metadata(dir.image()).map_or(0, |metadata| metadata.blocks() * 512)
        }
        DiskRecord::Folder => usage::folder_bytes(&dir.disk()),
    }
}
