//! Asking the kernel for more than one's share.

use crate::check::{Check, Outcome};
use crate::context::Context;
use crate::finding::{
    Group::Privileges,
    Severity::{High, Medium},
};
use crate::sys::{self, sys};

pub(super) const CHECKS: &[Check] = &[
    Check::new(Privileges, High, "scheduling.realtime", realtime)
.title("Nobody inside runs in real time")
.attempts("sched_setscheduler to SCHED_FIFO and SCHED_RR, sched_setattr to SCHED_DEADLINE")
.expects("refused"),
    Check::new(Privileges, Medium, "scheduling.nice", nice)
.title("Nobody inside goes before others")
.attempts("setpriority to -20, ioprio_set to real time")
.expects("refused"),
    Check::new(Privileges, High, "scheduling.oom", oom)
.title("Nobody inside hides from the out-of-memory killer")
.attempts("write -1000 to /proc/self/oom_score_adj")
.expects("refused"),
    Check::new(Privileges, Medium, "scheduling.limits", limits)
.title("Hard resource limits cannot be raised")
.attempts("prlimit of the hard limits of processes, open files, locked memory, core size to infinity")
.expects("refused, or infinite before"),
];

fn none_worked<const N: usize>(attempts: [(&str, sys::Result); N]) -> Outcome {
    let worked: Vec<String> = attempts
        .iter()
        .filter(|(_, result)| result.is_ok())
        .map(|(name, _)| format!("{name} worked"))
        .collect();
    let mut answers: Vec<String> = attempts
        .iter()
        .filter_map(|(_, result)| Some(result.err()?.to_string()))
        .collect();
    answers.dedup();
    Outcome::breached_by(&worked, answers.join(", "))
}

fn realtime(_: &Context) -> Outcome {
    let priority = 1_i32.to_ne_bytes();
    none_worked([
        (
            "SCHED_FIFO",
            sys!(
                libc::SYS_sched_setscheduler,
                0,
                libc::SCHED_FIFO,
                &priority[..]
            ),
        ),
        (
            "SCHED_RR",
            sys!(
                libc::SYS_sched_setscheduler,
                0,
                libc::SCHED_RR,
                &priority[..]
            ),
        ),
        (
            "SCHED_DEADLINE",
            sys!(libc::SYS_sched_setattr, 0, &deadline()[..], 0),
        ),
    ])
}

/// `struct sched_attr` asking for 1 ms of every 10.
fn deadline() -> Vec<u8> {
    let mut attr = Vec::new();
    attr.extend(48_u32.to_ne_bytes());
    attr.extend(6_u32.to_ne_bytes());
    attr.extend(0_u64.to_ne_bytes());
    attr.extend(0_i32.to_ne_bytes());
    attr.extend(0_u32.to_ne_bytes());
    for nanoseconds in [1_000_000_u64, 10_000_000, 10_000_000] {
        attr.extend(nanoseconds.to_ne_bytes());
    }
    attr
}

fn nice(_: &Context) -> Outcome {
    const IOPRIO_WHO_PROCESS: i32 = 1;
    const REAL_TIME: i32 = 1 << 13;
    none_worked([
        ("setpriority", sys!(libc::SYS_setpriority, 0, 0, -20)),
        (
            "ioprio_set",
            sys!(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, REAL_TIME),
        ),
    ])
}

fn oom(_: &Context) -> Outcome {
    match std::fs::write("/proc/self/oom_score_adj", "-1000") {
        Ok(()) => Outcome::breached("it worked"),
        Err(error) => Outcome::held(sys::Errno::from(error)),
    }
}

fn limits(_: &Context) -> Outcome {
    let kinds = [
        (libc::RLIMIT_NPROC, "processes"),
        (libc::RLIMIT_NOFILE, "open files"),
        (libc::RLIMIT_MEMLOCK, "locked memory"),
        (libc::RLIMIT_CORE, "core size"),
        (libc::RLIMIT_RTPRIO, "real-time priority"),
        (libc::RLIMIT_NICE, "nice"),
    ];
    let raised: Vec<String> = kinds
        .iter()
        .filter(|(kind, _)| raise(*kind))
        .map(|(_, name)| format!("{name} raised"))
        .collect();
    Outcome::breached_by(&raised, "none could be raised")
}

/// Whether a finite hard limit could be doubled.
fn raise(kind: libc::__rlimit_resource_t) -> bool {
    let mut now = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `now` is live and of the right type.
    if unsafe { libc::getrlimit(kind, &raw mut now) } != 0 || now.rlim_max == libc::RLIM_INFINITY {
        return false;
    }
    let more = libc::rlimit {
        rlim_cur: now.rlim_cur,
        rlim_max: now.rlim_max.saturating_mul(2).max(1),
    };
    // SAFETY: as above; the limit is this short-lived process's own.
    unsafe { libc::setrlimit(kind, &raw const more) == 0 }
}
