//! The disk: hard limits by one image for each sandbox, and free space.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::mounts::{Scratch, detached_from};
use crate::attempt::{Attempt, Failure, StepExt, attempt, checked};
use crate::host::Host;
use crate::report::{Check, Need};

const GIB: u64 = 1 << 30;
/// Below this, hardly a template and a sandbox fit.
const LEAST: u64 = 2 * GIB;
/// Below this, few sandboxes fit.
const COMFORTABLE: u64 = 10 * GIB;

pub(super) fn checks(host: &Host) -> Vec<Check> {
    vec![directory(host), image(host), free_space(host)]
}

fn directory(host: &Host) -> Check {
    let check = Check::ok("data-directory", Need::Required)
        .purpose("storage for templates and sandboxes")
        .detail(format!("{} is writable", host.data_dir.display()));
    match Scratch::new(host, "write") {
        Ok(_) => check,
        Err(failure) => {
            let dir = host.data_dir.display();
            let fix = format!("sudo install -d -m 700 -o {} {dir}", host.user);
            check.missing(failure.text(), fix)
        }
    }
}

fn image(host: &Host) -> Check {
    let check = Check::ok("disk-image", Need::Recommended)
        .purpose("disk limits are hard, and sandboxes together cannot fill the host's disk")
        .detail("mkfs.ext4, a loop device and a detached mount work");
    if !host.is_root() {
        let check = Check {
            needed: Need::Optional,
            ..check
        };
        return check.missing(
            "only root can mount disk images; as an ordinary user, disk use is measured every few seconds instead",
            "run Sandyard as root",
        );
    }
    let Some(mkfs) = find_program("mkfs.ext4") else {
        return check.missing(
            "mkfs.ext4 is not installed",
            "sudo apt-get install -y e2fsprogs",
        );
    };
    match try_image(host, &mkfs) {
        Ok(()) => check,
        Err(failure) => check.missing(
            failure.text(),
            "sudo modprobe -a loop ext4 # if this is a container, start it with `--privileged`",
        ),
    }
}

fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Users often lack the system directories in their path.
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}

fn try_image(host: &Host, mkfs: &Path) -> Attempt {
    let scratch = Scratch::new(host, "image")?;
    let image = scratch.0.join("image");
    let file = std::fs::File::create(&image).step("make an image")?;
    file.set_len(8 << 20).step("size an image")?;
    let status = Command::new(mkfs)
        .args(["-q", "-F"])
        .arg(&image)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .step("run mkfs.ext4")?;
    if !status.success() {
        return Err(Failure::new("run mkfs.ext4", Errno::IO));
    }
    attempt(|| {
        let (device, path) = attach_loop(&image)?;
        let mount = detached_from("ext4", &path)?;
        // The kernel frees the device with its last user.
        drop((mount, device));
        Ok(())
    })
}

/// Binds a file to a free loop device, which frees itself when closed.
fn attach_loop(image: &Path) -> Attempt<(OwnedFd, String)> {
    const GET_FREE: libc::Ioctl = 0x4c82;
    const CONFIGURE: libc::Ioctl = 0x4c0a;
    const AUTOCLEAR: u64 = 4;
    const ATTEMPTS: usize = 100;
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let control = rustix::fs::open("/dev/loop-control", flags, Mode::empty())
        .step("open /dev/loop-control")?;
    let file = rustix::fs::open(image, flags, Mode::empty()).step("open the image")?;
    let mut last = Err(Failure::new("find a free loop device", Errno::BUSY));
    for _ in 0..ATTEMPTS {
        // SAFETY: takes no argument.
        let number = unsafe { libc::ioctl(control.as_raw_fd(), GET_FREE) };
        let number = checked(number.into()).step("find a free loop device")?;
        let path = format!("/dev/loop{number}");
        let device = rustix::fs::open(&path, flags, Mode::empty()).step(&format!("open {path}"))?;
        // `struct loop_config`, 304 bytes: descriptor, block size, then `loop_info64` whose flags are at byte 60 in all.
        let mut config = [0_u64; 38];
        config[0] = file.as_raw_fd() as u64;
        config[7] = AUTOCLEAR << 32;
        // SAFETY: the structure is live and has the size and layout that this call reads.
        let configured = unsafe { libc::ioctl(device.as_raw_fd(), CONFIGURE, config.as_mut_ptr()) };
        let configured = checked(configured.into()).step(&format!("configure {path}"));
        match configured {
            Ok(_) => return Ok((device, path)),
            // Another process has taken it.
            Err(failure) if failure.errno == Errno::BUSY => last = Err(failure),
            Err(failure) => return Err(failure),
        }
    }
    last
}

fn free_space(host: &Host) -> Check {
    let check =
        Check::ok("disk-space", Need::Recommended).purpose("space for templates and sandboxes");
    let base = host.data_base.display();
    let Ok(stat) = rustix::fs::statvfs(&host.data_base) else {
        return check.missing(
            format!("the free space of {base} cannot be read"),
            format!("ls -ld {base}"),
        );
    };
    let free = stat.f_bavail * stat.f_frsize;
    let detail = format!("{:.1} GiB free on {base}", free as f64 / GIB as f64);
    let fix = "df -h # then free some space, or move the data directory to a larger disk";
    match free {
        free if free < LEAST => check.missing(detail, fix),
        free if free < COMFORTABLE => check.partial(detail, fix),
        _ => Check { detail, ..check },
    }
}
