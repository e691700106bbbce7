//! New namespaces, and those of others.

use crate::check::{Check, OnHost, Outcome};
use crate::context::Context;
use crate::finding::{
    Group::Privileges,
    Severity::{Critical, High, Medium},
};
use crate::search::pids;
use crate::sys::{self, Arg, Errno, sys};

const REFUSED: &str = "refused";

pub(super) const CHECKS: &[Check] = &[
    Check::new(Privileges, Medium, "namespaces.user", user)
        .title("No user namespace can be made")
        .attempts("unshare(CLONE_NEWUSER), clone and clone3 of the same")
        .expects(REFUSED),
    Check::new(Privileges, High, "namespaces.others", other_namespaces)
        .title("No other namespace can be made")
        .attempts(
            "unshare of mount, pid, net, ipc, uts, cgroup and time namespaces, clone3 of the same",
        )
        .expects(REFUSED),
    Check::new(Privileges, Critical, "namespaces.enter", enter)
        .title("No namespace can be entered")
        .attempts("setns to every namespace file and pidfd of every process in /proc")
        .expects("refused, or the namespace we are in"),
    Check::new(Privileges, Critical, "namespaces.owner", owner)
        .title("The way up from our namespaces is closed")
        .attempts("NS_GET_USERNS and NS_GET_PARENT on each of our namespace files, then setns")
        .expects(REFUSED)
        .on_host(OnHost::Depends),
];

const KINDS: [(&str, i32); 7] = [
    ("mount", libc::CLONE_NEWNS),
    ("pid", libc::CLONE_NEWPID),
    ("net", libc::CLONE_NEWNET),
    ("ipc", libc::CLONE_NEWIPC),
    ("uts", libc::CLONE_NEWUTS),
    ("cgroup", libc::CLONE_NEWCGROUP),
    ("time", 0x80),
];

fn user(_: &Context) -> Outcome {
    make([("user", libc::CLONE_NEWUSER)])
}

fn other_namespaces(_: &Context) -> Outcome {
    make(KINDS)
}

fn make<const N: usize>(kinds: [(&str, i32); N]) -> Outcome {
    let mut made = Vec::new();
    let mut answers = Vec::new();
    for (name, flag) in kinds {
        for (call, result) in [
            ("clone3", clone3(flag)),
            ("clone", clone(flag)),
            ("unshare", sys!(libc::SYS_unshare, flag)),
        ] {
            match result {
                Ok(_) => made.push(format!("{call} made a {name} namespace")),
                Err(errno) => answers.push(errno.to_string()),
            }
        }
    }
    answers.sort();
    answers.dedup();
    Outcome::breached_by(&made, answers.join(", "))
}

fn clone3(flag: i32) -> sys::Result {
    // `struct clone_args` of its first published size: flags, pidfd, child_tid, parent_tid, exit_signal, stack, …
    let mut args = [0_u64; 8];
    args[0] = u64::from(flag.cast_unsigned());
    args[4] = libc::SIGCHLD as u64;
    let bytes: Vec<u8> = args.iter().flat_map(|word| word.to_ne_bytes()).collect();
    reap(sys!(libc::SYS_clone3, &bytes[..], 64))
}

fn clone(flag: i32) -> sys::Result {
    // The time namespace's bit is in the exit signal of this old call.
    if flag == 0x80 {
        return Err(Errno(libc::ENOSYS));
    }
    reap(sys!(
        libc::SYS_clone,
        flag | libc::SIGCHLD,
        Arg::Null,
        Arg::Null,
        Arg::Null,
        0
    ))
}

/// A call that made a child returns in it too; there it ends at once.
fn reap(result: sys::Result) -> sys::Result {
    match result {
        // SAFETY: ends the child only.
        Ok(0) => unsafe { libc::_exit(0) },
        Ok(child) => {
            crate::child::wait(child as i32);
            Ok(child)
        }
        Err(errno) => Err(errno),
    }
}

fn enter(_: &Context) -> Outcome {
    let mut entered = Vec::new();
    let mut answers = Vec::new();
    for pid in pids() {
        for kind in [
            "user",
            "mnt",
            "pid",
            "net",
            "ipc",
            "uts",
            "cgroup",
            "time",
            "pid_for_children",
        ] {
            let path = format!("/proc/{pid}/ns/{kind}");
            let own = std::fs::read_link(format!("/proc/self/ns/{kind}")).ok();
            let same = own.is_some() && std::fs::read_link(&path).ok() == own;
            let Ok(fd) = sys::open(&path, libc::O_RDONLY) else {
                continue;
            };
            match sys!(libc::SYS_setns, fd, 0) {
                Ok(_) if !same => entered.push(format!("`{path}`")),
                Ok(_) => {}
                Err(errno) => answers.push(errno.to_string()),
            }
            sys::close(fd);
        }
        let everything = KINDS
            .iter()
            .fold(libc::CLONE_NEWUSER, |all, (_, flag)| all | flag);
        let pidfd = sys!(libc::SYS_pidfd_open, pid, 0);
        if let Err(errno) = pidfd.and_then(|pidfd| sys!(libc::SYS_setns, pidfd, everything)) {
            answers.push(errno.to_string());
        }
    }
    answers.sort();
    answers.dedup();
    Outcome::breached_by(&entered, answers.join(", "))
}

const NS_GET_USERNS: i64 = 0xb701;
const NS_GET_PARENT: i64 = 0xb702;

fn owner(_: &Context) -> Outcome {
    let mut reached = Vec::new();
    let mut answers = Vec::new();
    for kind in ["user", "pid", "mnt", "net", "ipc", "uts", "cgroup"] {
        let Ok(fd) = sys::open(format!("/proc/self/ns/{kind}"), libc::O_RDONLY) else {
            continue;
        };
        for request in [NS_GET_USERNS, NS_GET_PARENT] {
            let result = sys!(libc::SYS_ioctl, fd, request)
                .and_then(|above| sys!(libc::SYS_setns, above, 0));
            match result {
                Ok(_) => reached.push(format!("entered what owns our {kind} namespace")),
                Err(errno) => answers.push(errno.to_string()),
            }
        }
    }
    answers.sort();
    answers.dedup();
    Outcome::breached_by(&reached, answers.join(", "))
}
