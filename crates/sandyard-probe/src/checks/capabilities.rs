//! Capabilities: those we have, those we could get, and whether the filter is on.

use crate::check::{Check, OnHost, Outcome};
use crate::context::Context;
use crate::finding::{
    Group::Privileges,
    Severity::{Critical, High, Medium},
};
use crate::sys::{self, sys};

pub(super) const CHECKS: &[Check] = &[
    Check::new(Privileges, Critical, "capabilities.bounding", bounding)
        .title("No dangerous capability can ever be had")
        .attempts("compare the bounding set with the documented one")
        .expects("nothing beyond it")
        .on_host(OnHost::Breaches),
    Check::new(Privileges, High, "capabilities.user", user)
        .title("The user has no capability")
        .attempts("read the effective and permitted sets as the user")
        .expects("empty; for root: within the documented set")
        .on_host(OnHost::BreachesForRoot),
    Check::new(Privileges, Critical, "capabilities.raise", raise)
        .title("No capability can be added")
        .attempts("capset of everything, ambient raise of CAP_SYS_ADMIN, a return to keep-caps")
        .expects("refused"),
    Check::new(Privileges, High, "capabilities.filter", filter)
        .title("The system call filter is on")
        .attempts("read the seccomp mode")
        .expects("2, a filter")
        .on_host(OnHost::Breaches),
    Check::new(Privileges, Medium, "capabilities.filter-off", filter_off)
        .title("The filter cannot be taken off")
        .attempts("prctl back to no seccomp, PTRACE_O_SUSPEND_SECCOMP on a child")
        .expects("refused"),
];

/// The names of capabilities by number, as in capabilities(7).
const NAMES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

const fn bit(number: u32) -> u64 {
    1 << number
}

const SYS_ADMIN: u32 = 21;

/// What no sandbox may have, whatever its documentation says: each opens the kernel or the host, or undoes the rest.
pub(super) const FORBIDDEN: u64 = bit(2) // DAC_READ_SEARCH: open by handle
    | bit(16) // SYS_MODULE
    | bit(17) // SYS_RAWIO
    | bit(20) // SYS_PACCT
    | bit(SYS_ADMIN)
    | bit(22) // SYS_BOOT
    | bit(24) // SYS_RESOURCE
    | bit(25) // SYS_TIME
    | bit(26) // SYS_TTY_CONFIG
    | bit(30) // AUDIT_CONTROL
    | bit(32) // MAC_OVERRIDE
    | bit(33) // MAC_ADMIN
    | bit(34) // SYSLOG
    | bit(35) // WAKE_ALARM
    | bit(36) // BLOCK_SUSPEND
    | bit(37) // AUDIT_READ
    | bit(38) // PERFMON
    | bit(39) // BPF
    | bit(40); // CHECKPOINT_RESTORE

pub(super) fn names_of(set: u64) -> String {
    let names: Vec<&str> = NAMES
        .iter()
        .enumerate()
        .filter(|(number, _)| set >> number & 1 == 1)
        .map(|(_, name)| *name)
        .collect();
    names.join(" ")
}

fn beyond(context: &Context, set: u64) -> u64 {
    let undocumented = context
        .plan
        .allowed_caps
        .map_or(0, |allowed| set & !allowed);
    set & FORBIDDEN | undocumented
}

fn bounding(context: &Context) -> Outcome {
    let set = context.identity.bounding_caps;
    match beyond(context, set) {
        0 => Outcome::held(names_of(set)),
        extra => Outcome::breached(names_of(extra)),
    }
}

fn user(context: &Context) -> Outcome {
    let set = context.identity.effective_caps | context.identity.permitted_caps;
    let extra = if context.is_root() {
        beyond(context, set)
    } else {
        set
    };
    match extra {
        0 if set == 0 => Outcome::held("none"),
        0 => Outcome::held(names_of(set)),
        extra => Outcome::breached(names_of(extra)),
    }
}

fn raise(_: &Context) -> Outcome {
    let mut worked = Vec::new();
    // `struct __user_cap_header_struct` of version 3, then two times effective, permitted, inheritable.
    let header = [0x2008_0522_u32.to_ne_bytes(), 0_u32.to_ne_bytes()].concat();
    let everything = [0xff_u8; 24];
    if sys!(libc::SYS_capset, &header[..], &everything[..]).is_ok() {
        worked.push("capset of everything".to_owned());
    }
    if sys!(
        libc::SYS_prctl,
        libc::PR_CAP_AMBIENT,
        libc::PR_CAP_AMBIENT_RAISE,
        SYS_ADMIN,
        0,
        0
    )
    .is_ok()
    {
        worked.push("ambient CAP_SYS_ADMIN".to_owned());
    }
    Outcome::breached_by(&worked, "refused")
}

fn filter(context: &Context) -> Outcome {
    match context.identity.seccomp_mode {
        2 => Outcome::held("2, a filter"),
        mode => Outcome::breached(format_args!("mode {mode}")),
    }
}

fn filter_off(_: &Context) -> Outcome {
    const PTRACE_O_SUSPEND_SECCOMP: i32 = 1 << 21;
    if sys!(libc::SYS_prctl, libc::PR_SET_SECCOMP, 0, 0, 0, 0).is_ok() {
        return Outcome::breached("seccomp was switched off");
    }
    // SAFETY: single-threaded; the child only waits to be killed.
    let child = unsafe { libc::fork() };
    if child == 0 {
        loop {
            // SAFETY: waits for a signal.
            unsafe { libc::pause() };
        }
    }
    let seized = sys!(
        libc::SYS_ptrace,
        libc::PTRACE_SEIZE,
        child,
        0,
        PTRACE_O_SUSPEND_SECCOMP
    );
    // SAFETY: our own child, not yet waited for.
    unsafe { libc::kill(child, libc::SIGKILL) };
    crate::child::wait(child);
    sys::failed(seized)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_have_the_names_of_the_manual() {
        assert_eq!(names_of(bit(SYS_ADMIN)), "SYS_ADMIN");
        assert_eq!(names_of(bit(40) | 1), "CHOWN CHECKPOINT_RESTORE");
        assert!(FORBIDDEN & bit(7) == 0, "SETUID is needed by sudo");
    }
}
