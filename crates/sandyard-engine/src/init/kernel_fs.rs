//! `/proc` and `/sys`, without the parts that control the host or reveal it.

use std::fs;
use std::io;
use std::path::Path;

use rustix::mount::MountFlags;
use sandyard_confine::rlimits::Accounting;

use super::InitPlan;
use super::root::{BOOT_ID, folder};
use crate::error::Result;
use crate::sys::{OperationExt, SysError, mount};

/// Files shown empty: they reveal the host's disks, memory, keys, timers or symbols, or control it.
const HIDDEN_FILES: [&str; 12] = [
    "proc/cmdline",
    "proc/diskstats",
    "proc/partitions",
    "proc/kcore",
    "proc/keys",
    "proc/key-users",
    "proc/kallsyms",
    "proc/kmsg",
    "proc/latency_stats",
    "proc/sched_debug",
    "proc/sysrq-trigger",
    "proc/timer_list",
];

/// Folders shown empty.
const HIDDEN_FOLDERS: [&str; 15] = [
    "proc/acpi",
    "proc/fs",
    // The load of the host. Everybody could register triggers there, in memory and time that no cgroup counts.
    "proc/pressure",
    "sys/block",
    "sys/class/block",
    "sys/devices/virtual/block",
    "sys/devices/virtual/bdi",
    "sys/fs/ext4",
    "proc/asound",
    "proc/scsi",
    "sys/firmware",
    "sys/kernel",
    "sys/fs/fuse",
    "sys/devices/virtual/powercap",
    "sys/power",
];

/// Folders shown read-only.
const READ_ONLY: [&str; 3] = ["proc/bus", "proc/irq", "proc/sys"];

const FLAGS: MountFlags = MountFlags::NOSUID
    .union(MountFlags::NODEV)
    .union(MountFlags::NOEXEC);

/// Where on the stage the empty folder is.
const EMPTY: &str = "empty";

/// Kernel settings of the sandbox's own namespaces, set before they become read-only.
const SETTINGS: [(&str, &str); 9] = [
    // An ordinary user inside may listen on port 80: there is no other user to protect.
    ("proc/sys/net/ipv4/ip_unprivileged_port_start", "0"),
    ("proc/sys/net/ipv4/ping_group_range", "0 65535"),
    // Not every kernel counts all data in sockets for the sandbox, so each socket holds little.
    ("proc/sys/net/ipv4/tcp_rmem", "4096 65536 1048576"),
    ("proc/sys/net/ipv4/tcp_wmem", "4096 65536 1048576"),
    // The kernel tracks connections that have ended or were never answered, in memory that no cgroup counts.
    (
        "proc/sys/net/netfilter/nf_conntrack_tcp_timeout_time_wait",
        "10",
    ),
    (
        "proc/sys/net/netfilter/nf_conntrack_tcp_timeout_syn_sent",
        "10",
    ),
    ("proc/sys/net/netfilter/nf_conntrack_udp_timeout", "10"),
    ("proc/sys/user/max_inotify_watches", "65536"),
    // No nested user namespaces: they expose kernel code that is rarely tested.
    ("proc/sys/user/max_user_namespaces", "0"),
];

/// Instances of inotify. The kernel's default for one user is 128.
const INOTIFY_INSTANCES: &str = "proc/sys/user/max_inotify_instances";

/// Mounts `/proc` and hides parts of it.
pub(super) fn mount_proc(root: &Path, plan: &InitPlan<'_>) -> Result<()> {
    // One empty folder, shown in many places: a bind is cheaper than a file system.
    let empty = plan.stage.join(EMPTY);
    fs::create_dir(&empty).operation("make", empty.display())?;
    let flags = FLAGS | MountFlags::RDONLY;
    mount::file_system("tmpfs", &empty, flags, "size=0,mode=555,nr_inodes=1")?;
    mount::file_system("proc", &folder(root, Path::new("proc"))?, FLAGS, "")
        .map_err(explain_proc)?;
    for (file, value) in SETTINGS {
        // Absent where the kernel was built without the feature it bounds.
        let _ = fs::write(root.join(file), value);
    }
    let instances = match plan.accounting {
        Accounting::Alone => "128",
        Accounting::Together => "32",
    };
    let _ = fs::write(root.join(INOTIFY_INSTANCES), instances);
    if !plan.mode.has_many_ids() {
        // There is only one group.
        let _ = fs::write(root.join("proc/sys/net/ipv4/ping_group_range"), "0 0");
    }
    hide(root, &plan.stage, "proc/")?;
    mount::bind_read_only(
        &plan.stage.join(BOOT_ID),
        &root.join("proc/sys/kernel/random/boot_id"),
    )?;
    Ok(())
}

/// Mounts `/sys`, or an empty folder where an outer container's masks forbid it.
pub(super) fn mount_sys(
    root: &Path,
    plan: &InitPlan<'_>,
    limitations: &mut Vec<String>,
) -> Result<()> {
    let target = folder(root, Path::new("sys"))?;
    match mount::file_system("sysfs", &target, FLAGS | MountFlags::RDONLY, "") {
        Ok(()) => hide(root, &plan.stage, "sys/"),
        Err(error) if error.source.kind() == io::ErrorKind::PermissionDenied => {
            limitations.push(
                "no /sys: the host is a container that hides parts of its own /sys".to_owned(),
            );
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

fn hide(root: &Path, stage: &Path, under: &str) -> Result<()> {
    let here = |path: &&&str| path.starts_with(under);
    for path in READ_ONLY.iter().filter(here) {
        let path = root.join(path);
        unless_missing(mount::bind_read_only(&path, &path))?;
    }
    for path in HIDDEN_FILES.iter().filter(here) {
        unless_missing(mount::bind(Path::new("/dev/null"), &root.join(path)))?;
    }
    for path in HIDDEN_FOLDERS.iter().filter(here) {
        unless_missing(mount::bind(&stage.join(EMPTY), &root.join(path)))?;
    }
    Ok(())
}

/// Not every kernel has all of these files.
fn unless_missing(result: Result<(), SysError>) -> Result<()> {
    match result {
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(()),
        other => Ok(other?),
    }
}

fn explain_proc(error: SysError) -> crate::error::EngineError {
    let refused = error.source.kind() == io::ErrorKind::PermissionDenied;
    let error = crate::error::EngineError::from(error);
    if !refused {
        return error;
    }
    error.hint("parts of the host's own /proc are hidden, as in a container; start that container with an unmasked /proc")
}
