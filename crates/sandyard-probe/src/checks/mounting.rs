//! New mounts, by the old call and by the new ones.

use std::ffi::CStr;

use crate::check::{Check, Outcome};
use crate::context::Context;
use crate::finding::{
    Group::Mounts,
    Severity::{Critical, High, Medium},
};
use crate::scratch::Scratch;
use crate::sys::{self, Arg, sys};

const REFUSED: &str = "refused";

pub(super) const CHECKS: &[Check] = &[
    Check::new(Mounts, High, "mounts.kernel", kernel)
.title("No kernel file system can be mounted anew")
.attempts("mount proc, sysfs, cgroup, cgroup2, mqueue, devpts, devtmpfs")
.expects(REFUSED),
    Check::new(Mounts, Critical, "mounts.debug", debug)
.title("No debugging file system can be mounted")
.attempts("mount debugfs, tracefs, securityfs, pstore, efivarfs, bpf, binfmt_misc, configfs, selinuxfs")
.expects(REFUSED),
    Check::new(Mounts, Medium, "mounts.plain", plain)
.title("No plain file system can be mounted")
.attempts("mount tmpfs, ramfs, overlay; bind / elsewhere")
.expects(REFUSED),
    Check::new(Mounts, Critical, "mounts.disk", disk)
.title("No disk can be mounted")
.attempts("mount /dev/vda, sda, nvme0n1, loop0, dm-0 as ext4, XFS and btrfs")
.expects(REFUSED),
    Check::new(Mounts, High, "mounts.new-calls", new_calls)
.title("The new mount calls are closed")
.attempts("fsopen, open_tree, fspick, move_mount, fsmount, mount_setattr")
.expects(REFUSED),
    Check::new(Mounts, High, "mounts.root", root)
.title("The root cannot be changed")
.attempts("pivot_root and move_mount of /")
.expects(REFUSED),
];

fn try_kinds(kinds: &[&CStr], sources: &[&CStr], options: &CStr) -> Outcome {
    let Ok(scratch) = Scratch::make() else {
        return Outcome::inconclusive("no place to mount on");
    };
    let target = sys::c_path(scratch.path());
    let mut mounted = Vec::new();
    let mut answers = Vec::new();
    for kind in kinds {
        for source in sources {
            match sys!(
                libc::SYS_mount,
                *source,
                target.as_c_str(),
                *kind,
                0,
                options
            ) {
                Ok(_) => {
                    mounted.push(format!("mounted {}", kind.to_string_lossy()));
                    let _ = sys!(libc::SYS_umount2, target.as_c_str(), libc::MNT_DETACH);
                }
                Err(errno) => answers.push(errno.to_string()),
            }
        }
    }
    answers.sort();
    answers.dedup();
    Outcome::breached_by(&mounted, answers.join(", "))
}

fn kernel(_: &Context) -> Outcome {
    try_kinds(
        &[
            c"proc",
            c"sysfs",
            c"cgroup",
            c"cgroup2",
            c"mqueue",
            c"devpts",
            c"devtmpfs",
        ],
        &[c"probe"],
        c"",
    )
}

fn debug(_: &Context) -> Outcome {
    let kinds = [
        c"debugfs",
        c"tracefs",
        c"securityfs",
        c"pstore",
        c"efivarfs",
        c"bpf",
        c"binfmt_misc",
        c"configfs",
        c"selinuxfs",
        c"fusectl",
        c"nfsd",
    ];
    try_kinds(&kinds, &[c"probe"], c"")
}

fn plain(_: &Context) -> Outcome {
    let outcome = try_kinds(&[c"tmpfs", c"ramfs"], &[c"probe"], c"");
    let Ok(scratch) = Scratch::make() else {
        return outcome;
    };
    let target = sys::c_path(scratch.path());
    let bind = sys!(
        libc::SYS_mount,
        c"/",
        target.as_c_str(),
        Arg::Null,
        libc::MS_BIND | libc::MS_REC,
        Arg::Null
    );
    if bind.is_ok() {
        let _ = sys!(libc::SYS_umount2, target.as_c_str(), libc::MNT_DETACH);
        return Outcome::breached(format_args!("bound / elsewhere; {}", outcome.observed));
    }
    let overlay = try_kinds(&[c"overlay"], &[c"probe"], c"lowerdir=/usr:/etc");
    if overlay.verdict == crate::finding::Verdict::Held {
        outcome
    } else {
        overlay
    }
}

fn disk(_: &Context) -> Outcome {
    let disks = [
        c"/dev/vda",
        c"/dev/sda1",
        c"/dev/nvme0n1p1",
        c"/dev/loop0",
        c"/dev/dm-0",
    ];
    try_kinds(&[c"ext4", c"xfs", c"btrfs"], &disks, c"")
}

/// Any answer except a refusal means that the call is open. No valid arguments are needed for that.
fn new_calls(_: &Context) -> Outcome {
    const OPEN_TREE_CLONE: i32 = 1;
    let attributes = [0_u8; 32];
    let attempts = [
        ("fsopen", sys!(libc::SYS_fsopen, c"tmpfs", 0)),
        (
            "open_tree",
            sys!(libc::SYS_open_tree, libc::AT_FDCWD, c"/", OPEN_TREE_CLONE),
        ),
        ("fspick", sys!(libc::SYS_fspick, libc::AT_FDCWD, c"/", 0)),
        (
            "move_mount",
            sys!(libc::SYS_move_mount, -1, c"", -1, c"", 0),
        ),
        (
            "mount_setattr",
            sys!(
                libc::SYS_mount_setattr,
                libc::AT_FDCWD,
                c"/",
                0,
                &attributes[..],
                32
            ),
        ),
    ];
    let mut worked = Vec::new();
    let mut answers = Vec::new();
    for (name, result) in attempts {
        match result {
            // All attributes zero is a request to change nothing and is granted to anyone.
            Ok(_) if name == "mount_setattr" => answers.push("nothing changed".to_owned()),
            Ok(_) => worked.push(format!("{name} worked")),
            Err(errno) => answers.push(errno.to_string()),
        }
    }
    answers.sort();
    answers.dedup();
    Outcome::breached_by(&worked, answers.join(", "))
}

fn root(_: &Context) -> Outcome {
    let Ok(scratch) = Scratch::make() else {
        return Outcome::inconclusive("no place for a root");
    };
    let target = sys::c_path(scratch.path());
    sys::refused(sys!(
        libc::SYS_pivot_root,
        target.as_c_str(),
        target.as_c_str()
    ))
}
