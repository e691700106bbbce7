//! Settings of the kernel below /proc/sys and /sys. Files are opened for writing and nothing is written: the kernel
//! decides at that moment.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::check::{Check, OnHost, Outcome};
use crate::context::Context;
use crate::finding::{
    Group::Knobs,
    Severity::{Critical, High},
};
use crate::sys;

const REFUSED: &str = "not there, read-only or refused";

pub(super) const CHECKS: &[Check] = &[
    Check::new(Knobs, Critical, "knobs.helpers", helpers)
.title("Programs that the kernel starts as root cannot be changed")
.attempts("open core_pattern, modprobe, hotplug, poweroff_cmd, uevent_helper, binfmt_misc for writing")
.expects(REFUSED)
        .on_host(OnHost::BreachesForRoot),
    Check::new(Knobs, Critical, "knobs.sysrq", sysrq)
.title("SysRq commands cannot be sent")
.attempts("open /proc/sysrq-trigger and kernel/sysrq for writing")
.expects(REFUSED)
        .on_host(OnHost::Depends),
    Check::new(Knobs, High, "knobs.sysctl", sysctls)
.title("No setting of the whole kernel is writable")
.attempts("open every file below /proc/sys for writing")
.expects("refused, save what belongs to our own namespaces")
        .on_host(OnHost::BreachesForRoot),
    Check::new(Knobs, High, "knobs.sysfs", sysfs)
.title("Nothing below /sys is writable")
.attempts("open every file below /sys for writing")
.expects(REFUSED),
    Check::new(Knobs, High, "knobs.proc", proc_files)
.title("Nothing else of /proc is writable")
.attempts("open /proc/irq, /proc/acpi, /proc/bus, /proc/scsi, /proc/mtrr and their like for writing")
.expects(REFUSED),
];

fn helpers(_: &Context) -> Outcome {
    let files = [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/modprobe",
        "/proc/sys/kernel/hotplug",
        "/proc/sys/kernel/poweroff_cmd",
        "/proc/sys/fs/binfmt_misc/register",
        "/sys/kernel/uevent_helper",
        "/sys/kernel/debug",
    ];
    writable_among(files.map(PathBuf::from))
}

fn sysrq(_: &Context) -> Outcome {
    writable_among(["/proc/sysrq-trigger", "/proc/sys/kernel/sysrq"].map(PathBuf::from))
}

fn sysctls(_: &Context) -> Outcome {
    writable_among(
        files_below(Path::new("/proc/sys"))
            .into_iter()
            .filter(|file| !is_namespaced(file)),
    )
}

fn sysfs(_: &Context) -> Outcome {
    // Cgroups have a check of their own, which knows what a delegated one may look like.
    writable_among(
        files_below(Path::new("/sys"))
            .into_iter()
            .filter(|file| !file.starts_with("/sys/fs/cgroup")),
    )
}

fn proc_files(_: &Context) -> Outcome {
    let directories = [
        "/proc/irq",
        "/proc/acpi",
        "/proc/bus",
        "/proc/scsi",
        "/proc/asound",
        "/proc/fs",
        "/proc/driver",
    ];
    let mut files: Vec<PathBuf> = directories
        .iter()
        .flat_map(|directory| files_below(Path::new(directory)))
        .collect();
    files.extend(
        [
            "/proc/mtrr",
            "/proc/sysrq-trigger",
            "/proc/cgroups",
            "/proc/slabinfo",
            "/proc/timer_stats",
        ]
        .map(PathBuf::from),
    );
    writable_among(files)
}

/// Settings that each network, ipc, uts, pid or user namespace has for itself.
fn is_namespaced(file: &Path) -> bool {
    const NAMESPACED: [&str; 19] = [
        "net",
        "user",
        "fs/mqueue",
        "kernel/hostname",
        "kernel/domainname",
        "kernel/ns_last_pid",
        "kernel/shmall",
        "kernel/shmmax",
        "kernel/shmmni",
        "kernel/shm_rmid_forced",
        "kernel/msgmax",
        "kernel/msgmnb",
        "kernel/msgmni",
        "kernel/sem",
        "kernel/auto_msgmni",
        "kernel/msg_next_id",
        "kernel/sem_next_id",
        "kernel/shm_next_id",
        "kernel/pid_max",
    ];
    let below = file.strip_prefix("/proc/sys").unwrap_or(file);
    NAMESPACED.iter().any(|own| below.starts_with(own))
}

pub(super) fn writable_among(files: impl IntoIterator<Item = PathBuf>) -> Outcome {
    let mut tried = 0_u32;
    let writable: Vec<String> = files
        .into_iter()
        .inspect(|_| tried += 1)
        .filter(|file| opens_for_writing(file))
        .map(|file| format!("`{}`", file.display()))
        .collect();
    Outcome::breached_by(&writable, format_args!("{tried} tried, none writable"))
}

fn opens_for_writing(file: &Path) -> bool {
    let Ok(fd) = sys::open(file, libc::O_WRONLY) else {
        return false;
    };
    // A mask bound over it opens too: /dev/null takes what is written and does nothing.
    let masked = fs::metadata(format!("/proc/self/fd/{fd}"))
        .is_ok_and(|file| file.file_type().is_char_device());
    sys::close(fd);
    !masked
}

/// Every file below a directory, links not followed; bounded, since /sys is large.
pub(super) fn files_below(directory: &Path) -> Vec<PathBuf> {
    const MAX_FILES: usize = 60_000;
    let mut files = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => pending.push(entry.path()),
                Ok(kind) if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
        if files.len() > MAX_FILES {
            break;
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_a_namespace_are_distinguished_from_those_of_the_kernel() {
        assert!(is_namespaced(Path::new("/proc/sys/net/ipv4/ip_forward")));
        assert!(is_namespaced(Path::new("/proc/sys/kernel/sem")));
        assert!(!is_namespaced(Path::new("/proc/sys/kernel/sem_none")));
        assert!(!is_namespaced(Path::new("/proc/sys/kernel/core_pattern")));
        assert!(!is_namespaced(Path::new("/proc/sys/vm/drop_caches")));
    }
}
