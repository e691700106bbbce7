//! Mounts: the mount API of Linux 5.2 and later, overlayfs, id-mapped mounts, /proc and /sys.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags,
};
use rustix::process::Pid;
use rustix::thread::UnshareFlags;

use super::namespaces::{as_first_process, enter_user, unshare};
use crate::attempt::{Attempt, Failure, StepExt, attempt, attempt_helped, checked};
use crate::host::{Host, unique};
use crate::report::{Check, Need};

pub(super) fn checks(host: &Host) -> Vec<Check> {
    vec![
        mount_api(host),
        overlay(host),
        id_mapped(host),
        procfs(host),
        sysfs(host),
    ]
}

/// Makes mounts private first, so that not even a shared one can carry ours back.
fn enter_mounts(host: &Host, namespaces: UnshareFlags) -> Attempt {
    enter_user(host, UnshareFlags::NEWNS | namespaces)?;
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", flags).step("make mounts private")
}

/// Makes a file system that is mounted nowhere.
fn detached(kind: &str, options: &[(&str, &str)]) -> Attempt<OwnedFd> {
    let context =
        rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC).step(&format!("fsopen {kind}"))?;
    for (name, value) in options {
        rustix::mount::fsconfig_set_string(context.as_fd(), *name, *value)
            .step(&format!("set {name} of {kind}"))?;
    }
    rustix::mount::fsconfig_create(context.as_fd()).step(&format!("create {kind}"))?;
    rustix::mount::fsmount(
        context.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )
    .step(&format!("fsmount {kind}"))
}

pub(super) fn detached_from(kind: &str, source: &str) -> Attempt<OwnedFd> {
    detached(kind, &[("source", source)])
}

fn attach(mount: &OwnedFd, target: &Path) -> Attempt {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    rustix::mount::move_mount(mount, "", CWD, target, flags).step("move_mount")
}

fn mount_api(host: &Host) -> Check {
    let check = Check::ok("mount-api", Need::Required)
        .purpose("mounts of a sandbox never appear on the host")
        .detail("fsopen, fsmount, mount_setattr and move_mount work");
    let tried = attempt(|| {
        enter_mounts(host, UnshareFlags::empty())?;
        let mount = detached("tmpfs", &[])?;
        set_attributes(&mount, libc::MOUNT_ATTR_RDONLY, 0)?;
        attach(&mount, Path::new("/proc"))
    });
    match tried {
        Ok(()) => check,
        Err(failure) => check.missing(
            failure.text(),
            "upgrade the kernel to 5.12 or later; if this is a container, start it with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined`",
        ),
    }
}

fn set_attributes(mount: &OwnedFd, set: u64, userns_fd: u64) -> Attempt {
    let attributes = libc::mount_attr {
        attr_set: set,
        attr_clr: 0,
        propagation: 0,
        userns_fd,
    };
    let empty: &CStr = c"";
    // SAFETY: the path and the attributes are live, and the size is that of the attributes.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            empty.as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    checked(result).step("mount_setattr").map(|_| ())
}

/// A directory on the file system of the data directory, removed on drop.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new(host: &Host, purpose: &str) -> Attempt<Self> {
        let path = host.data_base.join(format!(".{}", unique(purpose)));
        std::fs::create_dir(&path)
            .step(&format!("make a directory in {}", host.data_base.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // An overlay's own folder has no permissions at all: only root could look into it before taking it away.
        let _ = std::fs::remove_dir(self.0.join("work/work"));
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn overlay(host: &Host) -> Check {
    let check = Check::ok("overlay", Need::Required)
        .purpose("sandboxes share one template and store only what they change");
    // Another check reports a data directory that cannot be written; this one then uses a file system in memory.
    let scratch = Scratch::new(host, "overlay").ok();
    let tried = attempt(|| {
        enter_mounts(host, UnshareFlags::empty())?;
        match &scratch {
            Some(scratch) => try_overlay(&scratch.0),
            None => {
                attach(&detached("tmpfs", &[])?, Path::new("/proc"))?;
                try_overlay(Path::new("/proc"))
            }
        }
    });
    match tried {
        Ok(()) => {
            let over = scratch.map_or(Path::new("memory"), |_| &host.data_base);
            let detail = format!("works in a user namespace over {}", over.display());
            Check { detail, ..check }
        }
        Err(failure) => check.missing(
            failure.text(),
            format!(
                "sudo modprobe overlay # if that does not help, move the data directory ({}) to ext4, xfs or btrfs",
                host.data_dir.display()
            ),
        ),
    }
}

fn try_overlay(folder: &Path) -> Attempt {
    // Relative names: the path may hold a colon or a comma.
    rustix::process::chdir(folder).step("enter the directory")?;
    for name in ["lower", "upper", "work", "merged"] {
        std::fs::create_dir(name).step("make a directory")?;
    }
    let options = c"lowerdir=lower,upperdir=upper,workdir=work,userxattr";
    rustix::mount::mount(
        "overlay",
        "merged",
        "overlay",
        MountFlags::empty(),
        Some(options),
    )
    .step("mount overlay with userxattr")?;
    std::fs::write("merged/file", "x").step("write to the overlay")?;
    std::fs::remove_file("merged/file").step("remove from the overlay")
}

fn id_mapped(host: &Host) -> Check {
    let check = Check::ok("id-mapped-mounts", Need::Recommended)
        .purpose("sandboxes with different user ids share one copy of a template");
    if !host.is_root() {
        let check = Check {
            needed: Need::Optional,
            ..check
        };
        return check.missing(
            "only root can create them; sandboxes of an ordinary user do not need them",
            "run Sandyard as root",
        );
    }
    let mut folders = vec![PathBuf::from("/")];
    folders.extend((host.data_base != Path::new("/")).then(|| host.data_base.clone()));
    let joined = |folders: &[PathBuf]| {
        let names: Vec<String> = folders
            .iter()
            .map(|folder| folder.display().to_string())
            .collect();
        names.join(" and ")
    };
    let mut failed = None;
    let (working, failing): (Vec<PathBuf>, Vec<PathBuf>) =
        folders.into_iter().partition(|folder| {
            try_id_mapped(folder)
                .map_err(|failure| failed = Some(failure))
                .is_ok()
        });
    let Some(failure) = failed else {
        return Check {
            detail: format!("work on {}", joined(&working)),
            ..check
        };
    };
    let detail = format!("do not work on {}: {}", joined(&failing), failure.text());
    let fix =
        "move the data directory to ext4, xfs or btrfs, and use kernel 5.12 (btrfs: 5.15) or later";
    match working.is_empty() {
        true => check.missing(detail, fix),
        false => check.partial(detail, fix),
    }
}

/// Id-maps a detached copy of a mount by a child's user namespace.
fn try_id_mapped(folder: &Path) -> Attempt {
    let map = |pid: Pid| {
        let pid = pid.as_raw_nonzero();
        for file in ["uid_map", "gid_map"] {
            let line = "0 1879048192 65536";
            std::fs::write(format!("/proc/{pid}/{file}"), line).step(&format!("write {file}"))?;
        }
        let path = format!("/proc/{pid}/ns/user");
        let userns = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .step("open the user namespace")?;
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let mount = rustix::mount::open_tree(CWD, folder, flags).step("open_tree")?;
        set_attributes(&mount, libc::MOUNT_ATTR_IDMAP, userns.as_raw_fd() as u64)
    };
    attempt_helped(
        || unshare(UnshareFlags::NEWUSER, "make a user namespace"),
        map,
        || Ok(()),
    )
}

fn procfs(host: &Host) -> Check {
    let check = Check::ok("procfs", Need::Required)
        .purpose("a sandbox sees its own processes in /proc")
        .detail("can be mounted in a user namespace");
    let tried = attempt(|| {
        enter_mounts(host, UnshareFlags::NEWPID)?;
        as_first_process(|| detached("proc", &[]).map(drop))
    });
    match tried {
        Ok(()) => check,
        Err(failure) => check.missing(masked(&failure, "/proc"), UNMASK),
    }
}

fn sysfs(host: &Host) -> Check {
    let check = Check::ok("sysfs", Need::Recommended)
        .purpose("a sandbox sees its own network devices in /sys")
        .detail("can be mounted in a user namespace");
    let tried = attempt(|| {
        enter_mounts(host, UnshareFlags::NEWNET)?;
        detached("sysfs", &[]).map(drop)
    });
    match tried {
        Ok(()) => check,
        Err(failure) => check.missing(masked(&failure, "/sys"), UNMASK),
    }
}

/// The kernel lets a user namespace mount these only if the outer one sees all of them.
const UNMASK: &str = "start the outer container with `--security-opt systempaths=unconfined` (podman: `--security-opt unmask=ALL`)";

fn masked(failure: &Failure, what: &str) -> String {
    match failure.errno {
        rustix::io::Errno::PERM => format!(
            "{}; an outer container hides parts of {what}",
            failure.text()
        ),
        _ => failure.text(),
    }
}
