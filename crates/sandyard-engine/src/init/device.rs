//! `/dev`: the few devices every program expects, and none that reaches hardware.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::mount::MountFlags;

use super::InitPlan;
use crate::error::Result;
use crate::sys::{OperationExt, mount};

/// Bind-mounted from the host: device nodes cannot be made in a user namespace.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Terminals of one sandbox. The kernel has 3,072 (`kernel.pty.max` minus `kernel.pty.reserve`) for all sandboxes together.
const MAX_TERMINALS: u32 = 32;

const LINKS: [(&str, &str); 6] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
    ("core", "/proc/kcore"),
];

/// Mounts and fills `/dev`.
pub(super) fn populate(root: &Path, plan: &InitPlan<'_>) -> Result<()> {
    let dev = super::root::folder(root, Path::new("dev"))?;
    mount::file_system("tmpfs", &dev, MountFlags::NOSUID, "mode=755,size=64k")?;
    for name in DEVICES {
        let target = dev.join(name);
        fs::write(&target, []).operation("make", target.display())?;
        mount::bind(&Path::new("/dev").join(name), &target)?;
    }
    for (name, target) in LINKS {
        symlink(target, dev.join(name)).operation("make link", name)?;
    }
    for folder in ["pts", "shm", "mqueue"] {
        fs::create_dir(dev.join(folder)).operation("make", folder)?;
    }
    // Group 5 is `tty` wherever there is a second id to give.
    let group = if plan.mode.has_many_ids() {
        ",gid=5"
    } else {
        ""
    };
    let terminals = format!("newinstance,ptmxmode=0666,mode=0620,max={MAX_TERMINALS}{group}");
    let quiet = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount::file_system("devpts", &dev.join("pts"), quiet, &terminals)?;
    let shared = format!("mode=1777,size={}", plan.shm_bytes);
    mount::file_system(
        "tmpfs",
        &dev.join("shm"),
        MountFlags::NOSUID | MountFlags::NODEV,
        &shared,
    )?;
    mount::file_system("mqueue", &dev.join("mqueue"), quiet | MountFlags::NODEV, "")?;
    Ok(())
}
