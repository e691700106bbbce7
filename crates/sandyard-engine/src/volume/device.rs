//! The loop device of a volume's image. Two devices on one image would corrupt the file system.

use std::fs;
use std::io;
use std::path::Path;

use rustix::mount::MountAttrFlags;

use super::{TIMEOUT, VolumeDir};
use crate::disk::{self, Mounted};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::sys::OperationExt;
use crate::sys::lock::Lock;
use crate::sys::loopdev::LoopDevice;

/// Mounts the image of a volume, detached, through its loop device if it has one already. The kernel frees the device with the
/// last mount.
pub(crate) fn attach(kernel: &dyn Kernel, dir: &VolumeDir, image: &Path) -> Result<Mounted> {
    let path = dir.device_lock();
    let lock = Lock::take(&path, TIMEOUT).operation("lock", path.display())?;
    let _lock = lock.ok_or_else(|| dir.busy())?;
    let device =
        match find(kernel, &path, image).operation("find the loop device of", image.display())? {
            Some(device) => device,
            None => {
                disk::metadata::allocate(image);
                kernel.attach_loop(image)?
            }
        };
    // Before the mount, which may outlive this process: otherwise the next worker would attach a second device.
    fs::write(&path, device.number.to_string()).operation("write", path.display())?;
    // Files of a volume may come from another sandbox: no devices and no setuid programs.
    let attributes = MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NOATIME;
    disk::mount_checked(kernel, &device, attributes)
}

/// The loop device of `image`, if there is one: by the number in the note, else by the kernel's list.
fn find(kernel: &dyn Kernel, note: &Path, image: &Path) -> io::Result<Option<LoopDevice>> {
    match fs::read_to_string(note)?.parse() {
        Ok(number) => kernel.reopen_loop(number, image),
        Err(_) => LoopDevice::find(image),
    }
}
