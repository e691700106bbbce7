//! Read-only mounts made writable, and masks lifted. Last of all, since success would wreck what the others look at.

use crate::check::{Check, Outcome};
use crate::context::Context;
use crate::finding::{
    Group::Mounts,
    Severity::{Critical, High},
};
use crate::mount_flags::mount_flags;
use crate::sys::{self, Arg, sys};
use sandyard_confine::mountinfo::{Mount, mounts};

pub(super) const CHECKS: &[Check] = &[
    Check::new(Mounts, Critical, "mounts.remount", remount)
.title("Read-only mounts stay read-only")
.attempts("remount each read-only mount writable: mount(2) of the mount, of its file system, mount_setattr")
.expects("refused"),
    Check::new(Mounts, Critical, "mounts.write", write)
.title("Read-only mounts take no file")
.attempts("make a file, change a mode and a time in each read-only mount")
.expects("refused"),
    Check::new(Mounts, High, "mounts.unmask", unmask)
.title("Nothing can be unmounted")
.attempts("umount, at once and lazily, of every mount")
.expects("refused"),
    Check::new(Mounts, High, "mounts.cover", cover)
.title("Masks cannot be moved or covered")
.attempts("MS_MOVE of each mount to another place; bind something over /proc/sys")
.expects("refused"),
];

fn read_only() -> Vec<Mount> {
    mounts().into_iter().filter(Mount::is_read_only).collect()
}

fn remount(_: &Context) -> Outcome {
    // `struct mount_attr`: set, clear, propagation, user namespace; MOUNT_ATTR_RDONLY is bit 0.
    let clear: Vec<u8> = [0_u64, 1, 0, 0]
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    let mut changed = Vec::new();
    let mut answers = Vec::new();
    let all = read_only();
    for mount in &all {
        let point = sys::c_path(&mount.point);
        let point = point.as_c_str();
        let flags = mount_flags(mount) | libc::MS_REMOUNT;
        let attempts = [
            sys!(
                libc::SYS_mount,
                Arg::Null,
                point,
                Arg::Null,
                flags | libc::MS_BIND,
                Arg::Null
            ),
            sys!(
                libc::SYS_mount,
                Arg::Null,
                point,
                Arg::Null,
                flags,
                Arg::Null
            ),
            sys!(
                libc::SYS_mount_setattr,
                libc::AT_FDCWD,
                point,
                0,
                &clear[..],
                32
            ),
        ];
        for result in attempts {
            match result {
                Ok(_) => changed.push(format!("`{}` became writable", mount.point.display())),
                Err(errno) => answers.push(errno.to_string()),
            }
        }
    }
    answers.sort();
    answers.dedup();
    Outcome::breached_by(
        &changed,
        format_args!("{} mounts: {}", all.len(), answers.join(", ")),
    )
}

fn write(_: &Context) -> Outcome {
    let all = read_only();
    let mut changed = Vec::new();
    for mount in &all {
        let file = mount.point.join("sandyard-probe-file");
        if std::fs::write(&file, "probe").is_ok() {
            changed.push(format!("wrote `{}`", file.display()));
            let _ = std::fs::remove_file(&file);
        }
        let point = sys::c_path(&mount.point);
        if sys!(
            libc::SYS_utimensat,
            libc::AT_FDCWD,
            point.as_c_str(),
            Arg::Null,
            0
        )
        .is_ok()
        {
            changed.push(format!("touched `{}`", mount.point.display()));
        }
    }
    Outcome::breached_by(
        &changed,
        format_args!("{} mounts, none took anything", all.len()),
    )
}

fn unmask(_: &Context) -> Outcome {
    let mut unmounted = Vec::new();
    let mut answers = Vec::new();
    // Deepest first, as one would have to.
    for mount in mounts()
        .into_iter()
        .rev()
        .filter(|mount| mount.point.to_str() != Some("/"))
    {
        let point = sys::c_path(&mount.point);
        for flags in [0, libc::MNT_DETACH] {
            match sys!(libc::SYS_umount2, point.as_c_str(), flags) {
                Ok(_) => unmounted.push(format!("`{}`", mount.point.display())),
                Err(errno) => answers.push(errno.to_string()),
            }
        }
    }
    answers.sort();
    answers.dedup();
    Outcome::breached_by(&unmounted, answers.join(", "))
}

fn cover(_: &Context) -> Outcome {
    let mut moved = Vec::new();
    let mut answers = Vec::new();
    for mount in mounts()
        .iter()
        .filter(|mount| mount.point.starts_with("/proc") || mount.point.starts_with("/sys"))
    {
        let point = sys::c_path(&mount.point);
        for (flags, source, target) in [
            (libc::MS_MOVE, point.as_c_str(), c"/tmp"),
            (libc::MS_BIND, c"/tmp", point.as_c_str()),
        ] {
            match sys!(libc::SYS_mount, source, target, Arg::Null, flags, Arg::Null) {
                Ok(_) => moved.push(format!("`{}`", mount.point.display())),
                Err(errno) => answers.push(errno.to_string()),
            }
        }
    }
    answers.sort();
    answers.dedup();
    Outcome::breached_by(&moved, answers.join(", "))
}
