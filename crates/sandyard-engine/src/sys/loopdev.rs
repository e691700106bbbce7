//! Loop devices: a file as a block device, which the kernel frees with its last user.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::ext4::LoopExt4;
use super::{OperationExt, SysResult, check};

const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82 as libc::Ioctl;
const LOOP_CONFIGURE: libc::Ioctl = 0x4C0A as libc::Ioctl;
const LOOP_GET_STATUS64: libc::Ioctl = 0x4C05 as libc::Ioctl;
/// The kernel detaches the device with its last user (the mount), so a crash cannot leak one.
const LO_FLAGS_AUTOCLEAR: u32 = 4;
/// How often another process may take the free device before this fails.
const ATTEMPTS: usize = 128;

#[repr(C)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo64,
    reserved: [u64; 8],
}

/// An attached loop device; keep it open until the file system on it is mounted.
#[derive(Debug)]
pub(crate) struct LoopDevice {
    device: File,
    /// `/dev/loopN`.
    pub(crate) path: PathBuf,
    /// N.
    pub(crate) number: u32,
}

impl LoopDevice {
    /// Device `number`, open.
    pub(crate) fn new(device: File, number: u32) -> Self {
        Self {
            device,
            path: path_of(number),
            number,
        }
    }

    /// The open device.
    pub(crate) fn file(&self) -> &File {
        &self.device
    }

    /// Attaches `image` to a free device.
    pub(crate) fn attach(image: &Path) -> SysResult<Self> {
        let backing = File::options()
            .read(true)
            .write(true)
            .open(image)
            .operation("open disk image", image.display())?;
        let control = File::options()
            .read(true)
            .write(true)
            .open("/dev/loop-control")
            .operation("open", "/dev/loop-control")?;
        let mut last = io::Error::from_raw_os_error(libc::EBUSY);
        for _ in 0..ATTEMPTS {
            // SAFETY: this request takes no argument and returns a number.
            let number =
                check(unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) }.into())
                    .operation("find a free device with", "/dev/loop-control")?
                    as u32;
            let path = path_of(number);
            let device = File::options()
                .read(true)
                .write(true)
                .open(&path)
                .operation("open", path.display())?;
            match configure(&device, &backing) {
                Ok(()) => {
                    LoopExt4(number).lift_old_dirty_limit();
                    return Ok(Self::new(device, number));
                }
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => last = error,
                Err(error) => return Err(error).operation("attach disk image to", path.display()),
            }
        }
        Err(last).operation("attach disk image", image.display())
    }

    /// Finds the device of `image` in the kernel's list, if that can be read.
    pub(crate) fn find(image: &Path) -> io::Result<Option<Self>> {
        let folder = image.parent().and_then(Path::file_name);
        let (Some(folder), Some(name)) = (folder, image.file_name()) else {
            return Ok(None);
        };
        // The process that attached it may have seen another path: only its end counts.
        let end = Path::new(folder).join(name);
        let devices = std::fs::read_dir("/sys/block").into_iter().flatten();
        for device in devices.flatten() {
            let backing = std::fs::read_to_string(device.path().join("loop/backing_file"));
            let is_backed = backing.is_ok_and(|file| Path::new(file.trim_end()).ends_with(&end));
            let number = || {
                device
                    .file_name()
                    .to_str()?
                    .strip_prefix("loop")?
                    .parse()
                    .ok()
            };
            if is_backed
                && let Some(number) = number()
                && let Some(found) = Self::reopen(number, image)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Opens device `number` if it is still attached to `image`.
    pub(crate) fn reopen(number: u32, image: &Path) -> io::Result<Option<Self>> {
        let path = path_of(number);
        let device = match File::options().read(true).write(true).open(&path) {
            Ok(device) => device,
            // It does not exist, or is just being detached.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENXIO)) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        // SAFETY: the structure is plain integers and arrays, for which all zeros is a valid value.
        let mut info: LoopInfo64 = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes one LoopInfo64, which `info` is.
        let status = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64, &raw mut info) };
        let image = std::fs::metadata(image)?;
        if status == -1 || info.inode != image.ino() || info.device != image.dev() {
            return Ok(None);
        }
        Ok(Some(Self::new(device, number)))
    }
}

fn path_of(number: u32) -> PathBuf {
    PathBuf::from(format!("/dev/loop{number}"))
}

fn configure(device: &File, backing: &File) -> io::Result<()> {
    // SAFETY: the structure is plain integers and arrays, for which all zeros is a valid value.
    let mut config: LoopConfig = unsafe { std::mem::zeroed() };
    config.fd = backing.as_raw_fd() as u32;
    config.block_size = 4096;
    // Not LO_FLAGS_DIRECT_IO: the first read would have to wait until the disk has the image we just copied.
    config.info.flags = LO_FLAGS_AUTOCLEAR;
    // SAFETY: the kernel reads one LoopConfig, which `config` is.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) }.into())
        .map(drop)
}
