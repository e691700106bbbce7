//! Device nodes: those that are there, and new ones.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::check::{Check, OnHost, Outcome};
use crate::context::Context;
use crate::finding::{Group::Devices, Severity::Critical};
use crate::scratch::Scratch;
use crate::sys::{self, sys};

pub(super) const CHECKS: &[Check] = &[
    Check::new(Devices, Critical, "devices.present", present)
.title("Only harmless devices are in /dev")
.attempts("open every device node below /dev other than null, zero, full, random, urandom, tty, ptmx and pts")
.expects("none")
        .on_host(OnHost::BreachesForRoot),
    Check::new(Devices, Critical, "devices.block", block_nodes)
.title("No disk can be made and opened")
.attempts("mknod of the host's disks, loop, SCSI, virtio, NVMe and device-mapper in several places, then open")
.expects("refused"),
    Check::new(Devices, Critical, "devices.character", character_nodes)
.title("No special device can be made and opened")
.attempts("mknod of mem, kmsg, fuse, tun, kvm, loop-control, vsock, vhost in several places, then open")
.expects("refused"),
];

/// Major and minor numbers of what every program may need.
fn is_harmless(device: u64) -> bool {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    match major {
        1 => matches!(minor, 3 | 5 | 7 | 8 | 9),
        // /dev/tty and /dev/ptmx.
        5 => matches!(minor, 0 | 2),
        // Pseudo-terminals.
        136..=143 => true,
        _ => false,
    }
}

fn present(_: &Context) -> Outcome {
    let opened: Vec<String> = nodes_below(Path::new("/dev"))
        .into_iter()
        .filter(|(_, device)| !is_harmless(*device))
        .filter(|(path, _)| {
            [libc::O_RDONLY, libc::O_WRONLY]
                .iter()
                .any(|flags| sys::open(path, *flags).map(sys::close).is_ok())
        })
        .map(|(path, _)| format!("opened `{}`", path.display()))
        .collect();
    Outcome::breached_by(&opened, "none other")
}

fn nodes_below(directory: &Path) -> Vec<(PathBuf, u64)> {
    let mut nodes = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(metadata) = fs::symlink_metadata(entry.path()) else {
                continue;
            };
            let kind = metadata.file_type();
            if kind.is_dir() {
                pending.push(entry.path());
            } else if kind.is_block_device() || kind.is_char_device() {
                nodes.push((entry.path(), metadata.rdev()));
            }
        }
    }
    nodes
}

fn block_nodes(context: &Context) -> Outcome {
    let planted = context.plan.secrets.iter().map(|secret| secret.device);
    let default_nodes = [
        (7, 0),
        (8, 0),
        (8, 1),
        (253, 0),
        (254, 0),
        (259, 0),
        (259, 1),
        (179, 0),
        (202, 0),
    ];
    let default_nodes = default_nodes.map(|(major, minor)| rustix::fs::makedev(major, minor));
    make_and_open(libc::S_IFBLK, planted.chain(default_nodes))
}

fn character_nodes(_: &Context) -> Outcome {
    let numbers = [
        (1, 1),
        (1, 2),
        (1, 4),
        (1, 11),
        (10, 229),
        (10, 200),
        (10, 232),
        (10, 237),
        (10, 241),
        (10, 238),
    ];
    make_and_open(
        libc::S_IFCHR,
        numbers.map(|(major, minor)| rustix::fs::makedev(major, minor)),
    )
}

fn make_and_open(kind: libc::mode_t, devices: impl IntoIterator<Item = u64>) -> Outcome {
    let scratch = Scratch::make().ok();
    let mut directories: Vec<PathBuf> = ["/dev", "/dev/shm", "/", "/run", "/home", "/var/tmp"]
        .map(PathBuf::from)
        .into();
    directories.extend(scratch.iter().map(|scratch| scratch.path().to_owned()));
    let mut opened = Vec::new();
    let mut answers = Vec::new();
    for device in devices {
        for place in &directories {
            let name = format!(
                "{}:{}",
                rustix::fs::major(device),
                rustix::fs::minor(device)
            );
            match make_one(&place.join("sandyard-probe-node"), kind, device) {
                Ok(()) => opened.push(format!(
                    "device {name} made in `{}` and opened",
                    place.display()
                )),
                Err(answer) => answers.push(answer),
            }
        }
    }
    answers.sort();
    answers.dedup();
    Outcome::breached_by(&opened, answers.join(", "))
}

fn make_one(path: &Path, kind: libc::mode_t, device: u64) -> Result<(), String> {
    let c_path = sys::c_path(path);
    // The kernel packs device numbers differently from the library for large ones; these are small.
    sys!(
        libc::SYS_mknodat,
        libc::AT_FDCWD,
        c_path.as_c_str(),
        kind | 0o666,
        device
    )
    .map_err(|errno| format!("mknod: {errno}"))?;
    let opened = sys::open(path, libc::O_RDONLY);
    let _ = fs::remove_file(path);
    match opened {
        Ok(_) => Ok(()),
        // These come from the driver, so the node was looked through.
        Err(errno)
            if matches!(
                errno.0,
                libc::ENXIO | libc::ENODEV | libc::EBUSY | libc::EINVAL
            ) =>
        {
            Ok(())
        }
        Err(errno) => Err(format!("mknod worked, open: {errno}")),
    }
}
