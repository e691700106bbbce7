//! Mounts an ext4 that may be damaged: errors are repaired first.
//!
//! The kernel notes errors in the superblock and mounts the file system all the same. Without a repair the damage spreads, and the
//! sandbox finds out one file at a time.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::mount::MountAttrFlags;

use crate::error::{EngineError, ErrorKind, Result};
use crate::kernel::Kernel;
use crate::sys::ext4::LoopExt4;
use crate::sys::loopdev::LoopDevice;
use crate::sys::{OperationExt, SysError};

/// Where the superblock is, and in it the 16 bits of the state.
const STATE_OFFSET: u64 = 1024 + 0x3A;
/// The kernel found errors.
const STATE_ERRORS: u16 = 2;
/// The longest a check may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(120);
/// How much of what e2fsck prints is kept for the log.
const LOG_BYTES: u64 = 4096;

/// A mounted file system.
#[derive(Debug)]
pub(crate) struct Mounted {
    /// The mount, detached.
    pub(crate) tree: OwnedFd,
    /// What was repaired, as a sentence for the user.
    pub(crate) repair: Option<String>,
}

/// Mounts the ext4 on `device`, repairing it first if it has errors.
///
/// # Errors
/// `Failed` when it cannot be repaired, or not in time.
pub(crate) fn mount(
    kernel: &dyn Kernel,
    device: &LoopDevice,
    attributes: MountAttrFlags,
) -> Result<Mounted> {
    let attach = || kernel.mount_ext4(device, attributes);
    if LoopExt4::on(device).is_mounted() {
        // A file system in use must not be checked; it was checked when it was mounted first.
        let tree = attach()?;
        return Ok(Mounted { tree, repair: None });
    }
    let mut repair = has_errors(device)?
        .then(|| repair_device(device))
        .transpose()?;
    let mut tree = match attach() {
        Err(error) if repair.is_none() && is_damage(&error) => {
            repair = Some(repair_device(device)?);
            attach()?
        }
        attached => attached?,
    };
    // The mount copies an error that only the journal has, as after an abort, into the superblock.
    if repair.is_none() && has_errors(device)? {
        drop(tree);
        repair = Some(repair_device(device)?);
        tree = attach()?;
    }
    Ok(Mounted { tree, repair })
}

fn has_errors(device: &LoopDevice) -> Result<bool> {
    let mut state = [0; 2];
    let read = device.file().read_exact_at(&mut state, STATE_OFFSET);
    read.operation("read the superblock of", device.path.display())?;
    Ok(u16::from_le_bytes(state) & STATE_ERRORS != 0)
}

/// The kernel's errors for a damaged file system.
fn is_damage(error: &SysError) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EUCLEAN | libc::EIO | libc::EINVAL | libc::EBADMSG)
    )
}

/// Repairs the file system on `device`, which must not be mounted. Returns a sentence for the user.
fn repair_device(device: &LoopDevice) -> Result<String> {
    let started = Instant::now();
    // First what can be repaired without loss, then everything.
    for mode in ["-p", "-y"] {
        let (code, output) = e2fsck(mode, &device.path, started + CHECK_TIMEOUT)?;
        // To the launcher's log, which may be closed.
        let _ = writeln!(
            io::stderr(),
            "e2fsck {mode} {} ended with {code}: {}",
            device.path.display(),
            output.trim()
        );
        if code & !7 != 0 && !is_superblock_damage(&output) {
            return Err(EngineError::new(
                ErrorKind::Failed,
                "the disk has file system errors, and e2fsck could not check it",
            )
            .hint("try again"));
        }
        // 1: errors corrected; 2: restart, which an unmounted file system does not need. Above: something is left.
        if code & !3 == 0 {
            return Ok(
                "file system errors were repaired with e2fsck: files written just before the errors may be incomplete or missing"
                    .to_owned(),
            );
        }
    }
    Err(EngineError::new(
        ErrorKind::Failed,
        "the disk has file system errors that e2fsck cannot repair",
    )
    .hint("delete the sandbox, or restore the disk image from a backup"))
}

/// Says whether e2fsck found a damaged superblock. With `-p` it does not try the backup superblocks, and its exit code is that of a
/// failed run (unreadable disk, out of memory, killed), after which nothing may be repaired. Only its output tells the difference.
fn is_superblock_damage(output: &str) -> bool {
    [
        "Bad magic number in super-block",
        "Superblock checksum does not match",
        "superblock is corrupt",
    ]
    .iter()
    .any(|text| output.contains(text))
}

/// Runs e2fsck, which refuses a device that is mounted. Returns its exit code and the start of its output.
fn e2fsck(mode: &str, device: &Path, deadline: Instant) -> Result<(i32, String)> {
    let output = memfd_create("e2fsck", MemfdFlags::CLOEXEC).operation("make", "a memory file")?;
    let mut output = File::from(output);
    let copy = || output.try_clone().operation("duplicate", "a memory file");
    let child = Command::new("e2fsck")
        .env_clear()
        .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
        .args(["-f", mode])
        .arg(device)
        .stdin(Stdio::null())
        .stdout(copy()?)
        .stderr(copy()?)
        .spawn();
    let mut child = match child {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(EngineError::new(
                ErrorKind::Unsupported,
                "the disk has file system errors, and e2fsck is not installed",
            )
            .hint("install the package e2fsprogs"));
        }
        other => other.operation("run", "e2fsck")?,
    };
    let status = loop {
        if let Some(status) = child.try_wait().operation("wait for", "e2fsck")? {
            break status;
        }
        if Instant::now() >= deadline {
            let _ = child.kill();
            let _ = child.wait();
            let seconds = CHECK_TIMEOUT.as_secs();
            let message = format!("checking the disk took longer than {seconds} s");
            return Err(EngineError::new(ErrorKind::Failed, message).hint("try again"));
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut text = Vec::new();
    let read = output
        .rewind()
        .and_then(|()| output.take(LOG_BYTES).read_to_end(&mut text));
    read.operation("read", "what e2fsck printed")?;
    // Ended by a signal: counts as a failed run.
    let code = status.code().unwrap_or(8);
    Ok((code, String::from_utf8_lossy(&text).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_superblock_is_distinguished_from_a_failed_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let image = folder.path().join("disk.img");
        let made = File::create(&image).and_then(|file| file.set_len(8 << 20));
        made.expect("an image");
        // All zeros: the magic number is wrong, and there are no copies.
        let deadline = Instant::now() + CHECK_TIMEOUT;
        let (code, output) = e2fsck("-p", &image, deadline).expect("e2fsck runs");
        assert_ne!(code & !7, 0, "{output}");
        assert!(is_superblock_damage(&output), "{output}");
        let (code, output) = e2fsck("-p", folder.path(), deadline).expect("e2fsck runs");
        assert_ne!(code & !7, 0, "{output}");
        assert!(!is_superblock_damage(&output), "{output}");
    }
}
