//! The one loop device of a volume's image: two on one image would each write its own idea of the file system.

use std::fs;
use std::io;
use std::path::Path;

use rustix::mount::MountAttrFlags;

use super::{PATIENCE, VolumeDir};
use crate::disk::{self, Mounted};
use crate::error::Result;
use crate::sys::Doing;
use crate::sys::lock::Lock;
use crate::sys::loopdev::LoopDevice;

/// Mounts the image of a volume without attaching it anywhere, through the device that it has already if there is one. The
/// device goes with the last mount.
pub(crate) fn attach(dir: &VolumeDir, image: &Path) -> Result<Mounted> {
    let path = dir.device_lock();
    let lock = Lock::take(&path, PATIENCE).doing("lock", path.display())?;
    let _lock = lock.ok_or_else(|| dir.busy())?;
    let device = match find(&path, image).doing("look for the device of", image.display())? {
        Some(device) => device,
        None => LoopDevice::attach(image)?,
    };
    // Before the mount, which may outlive us: a device that nobody knows the number of would be the first of two.
    fs::write(&path, device.number.to_string()).doing("write", path.display())?;
    // What others put there is no more to be trusted than what they send.
    let attributes = MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NOATIME;
    disk::mount_checked(&device, attributes)
}

/// The device that stands on `image`, if there is one: the one that is noted, or, when none is, one that the kernel knows of.
fn find(note: &Path, image: &Path) -> io::Result<Option<LoopDevice>> {
    match fs::read_to_string(note)?.parse() {
        Ok(number) => LoopDevice::reopen(number, image),
        Err(_) => LoopDevice::find(image),
    }
}
