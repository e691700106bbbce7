//! What a nested user namespace gives, where one can be made: all capabilities, over nothing.

use crate::check::{Check, Outcome};
use crate::context::Context;
use crate::finding::{
    Group::Privileges,
    Severity::{Critical, High},
};
use crate::mount_flags::mount_flags;
use crate::scratch::Scratch;
use crate::search::read_start;
use crate::sys::{self, Arg, sys};
use sandyard_confine::mountinfo::mounts;

pub(super) const CHECKS: &[Check] = &[
    Check::new(Privileges, High, "nesting.mounts", masks)
.title("A nested namespace does not lift read-only or masks")
.attempts("in new user and mount namespaces: remount what is read-only, unmount what is masked")
.expects("refused"),
    Check::new(Privileges, Critical, "nesting.devices", devices)
.title("A nested namespace makes no device")
.attempts("in a new user namespace: mknod of a disk and of kernel memory")
.expects("refused"),
    Check::new(Privileges, High, "nesting.proc", fresh_proc)
.title("A nested namespace shows no unmasked /proc or /sys")
.attempts("in new user, pid, mount and net namespaces: mount proc and sysfs, write core_pattern there")
.expects("refused"),
    Check::new(Privileges, Critical, "nesting.ids", foreign_ids)
.title("A nested namespace maps no foreign id")
.attempts("in a new user namespace: map the host's root")
.expects("refused"),
];

/// Enters new namespaces; held at once where that is refused.
fn nested(flags: i32, attempt: impl FnOnce() -> Outcome) -> Outcome {
    // SAFETY: plain calls that cannot fail.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    match sys!(libc::SYS_unshare, flags | libc::CLONE_NEWUSER) {
        Err(errno) => Outcome::held(format_args!("no nested namespace: {errno}")),
        Ok(_) => {
            let _ = std::fs::write("/proc/self/setgroups", "deny");
            let _ = std::fs::write("/proc/self/uid_map", format!("0 {uid} 1"));
            let _ = std::fs::write("/proc/self/gid_map", format!("0 {gid} 1"));
            attempt()
        }
    }
}

fn masks(_: &Context) -> Outcome {
    let before: Vec<_> = mounts()
        .into_iter()
        .filter(|mount| mount.point.to_str() != Some("/"))
        .collect();
    nested(libc::CLONE_NEWNS, || {
        let mut lifted = Vec::new();
        for mount in &before {
            let point = sys::c_path(&mount.point);
            let point = point.as_c_str();
            let flags = libc::MS_REMOUNT | libc::MS_BIND | mount_flags(mount);
            if mount.is_read_only()
                && sys!(
                    libc::SYS_mount,
                    Arg::Null,
                    point,
                    Arg::Null,
                    flags,
                    Arg::Null
                )
                .is_ok()
            {
                lifted.push(format!("`{}` became writable", mount.point.display()));
            }
            if sys!(libc::SYS_umount2, point, libc::MNT_DETACH).is_ok() {
                lifted.push(format!("`{}` was unmounted", mount.point.display()));
            }
        }
        Outcome::breached_by(
            &lifted,
            format_args!("{} mounts tried, none gave way", before.len()),
        )
    })
}

fn devices(_: &Context) -> Outcome {
    nested(libc::CLONE_NEWNS, || {
        let Ok(scratch) = Scratch::make() else {
            return Outcome::inconclusive("no place for a node");
        };
        let node = sys::c_path(scratch.path().join("node"));
        let kinds = [
            (libc::S_IFBLK, rustix::fs::makedev(8, 0)),
            (libc::S_IFCHR, rustix::fs::makedev(1, 1)),
        ];
        let result = kinds.iter().try_fold(0, |_, (kind, device)| {
            sys!(
                libc::SYS_mknodat,
                libc::AT_FDCWD,
                node.as_c_str(),
                kind | 0o666,
                *device
            )
        });
        sys::failed(result)
    })
}

fn fresh_proc(_: &Context) -> Outcome {
    nested(
        libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWNET,
        || {
            let Ok(scratch) = Scratch::make() else {
                return Outcome::inconclusive("no place to mount on");
            };
            let target = sys::c_path(scratch.path());
            let mut mounted = Vec::new();
            // SAFETY: single-threaded; the child is the first of the new pid namespace and ends below.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let code =
                    [c"proc", c"sysfs"]
                        .iter()
                        .enumerate()
                        .fold(0, |code, (number, kind)| {
                            let result = sys!(
                                libc::SYS_mount,
                                c"probe",
                                target.as_c_str(),
                                *kind,
                                0,
                                Arg::Null
                            );
                            code | i32::from(result.is_ok()) << number
                        });
                // SAFETY: ends the child only.
                unsafe { libc::_exit(code) }
            }
            let code = libc::WEXITSTATUS(crate::child::wait(child));
            for (number, kind) in ["proc", "sysfs"].iter().enumerate() {
                if code >> number & 1 == 1 {
                    mounted.push(format!("mounted {kind} anew"));
                }
            }
            Outcome::breached_by(&mounted, "neither could be mounted")
        },
    )
}

fn foreign_ids(_: &Context) -> Outcome {
    match sys!(libc::SYS_unshare, libc::CLONE_NEWUSER) {
        Err(errno) => Outcome::held(format_args!("no nested namespace: {errno}")),
        Ok(_) => {
            // Outside ids of a nested map are those of the namespace around it, so 100000 is nobody's there.
            let worked = std::fs::write("/proc/self/uid_map", "0 100000 65536").is_ok();
            let map =
                String::from_utf8_lossy(&read_start("/proc/self/uid_map").unwrap_or_default())
                    .into_owned();
            if worked {
                Outcome::breached(map)
            } else {
                Outcome::held("the map was refused")
            }
        }
    }
}
