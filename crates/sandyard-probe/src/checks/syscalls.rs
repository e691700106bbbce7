//! System calls nobody inside needs, each asked in a way that changes nothing should it be taken up.

use crate::check::{Check, OnHost, Outcome};
use crate::context::Context;
use crate::finding::{
    Group::Kernel,
    Severity::{Critical, High, Low, Medium},
};
use crate::sys::{self, Arg, sys};

const REFUSED: &str = "refused before the kernel reads the arguments";

pub(super) const CHECKS: &[Check] = &[
    Check::new(Kernel, High, "kernel.bpf", bpf)
        .title("`bpf` is closed")
        .attempts("create a BPF map; give an unknown command")
        .expects(REFUSED)
        .on_host(OnHost::BreachesForRoot),
    Check::new(Kernel, High, "kernel.io-uring", io_uring)
        .title("`io_uring` is closed")
        .attempts("io_uring_setup of one entry")
        .expects(REFUSED)
        .on_host(OnHost::Depends),
    Check::new(Kernel, High, "kernel.userfaultfd", userfaultfd)
        .title("`userfaultfd` is closed")
        .attempts("userfaultfd, user mode only and not")
        .expects(REFUSED)
        .on_host(OnHost::Depends),
    Check::new(Kernel, High, "kernel.perf", perf)
        .title("`perf_event_open` is closed")
        .attempts("open a software clock event on ourselves")
        .expects(REFUSED)
        .on_host(OnHost::BreachesForRoot),
    Check::new(Kernel, Critical, "kernel.modules", modules)
        .title("No kernel module can be loaded or removed")
        .attempts("init_module, finit_module, delete_module with nothing")
        .expects(REFUSED)
        .on_host(OnHost::Depends),
    Check::new(Kernel, Critical, "kernel.kexec", kexec)
        .title("No other kernel can be loaded")
        .attempts("kexec_load and kexec_file_load with bad arguments")
        .expects(REFUSED)
        .on_host(OnHost::Depends),
    Check::new(Kernel, Critical, "kernel.reboot", reboot)
        .title("`reboot` is closed")
        .attempts("reboot with a wrong magic number")
        .expects(REFUSED)
        .on_host(OnHost::BreachesForRoot),
    Check::new(Kernel, High, "kernel.swap", swap)
        .title("Swap cannot be changed")
        .attempts("swapon and swapoff of a file that is not there")
        .expects(REFUSED)
        .on_host(OnHost::Depends),
    Check::new(Kernel, High, "kernel.clock", clock)
        .title("The clock cannot be set")
        .attempts("settimeofday of nothing, adjtimex with an impossible tick")
        .expects(REFUSED)
        .on_host(OnHost::BreachesForRoot),
    Check::new(Kernel, Medium, "kernel.hostname", hostname)
        .title("The host's name cannot be changed")
        .attempts("sethostname")
        .expects("refused; the host's own name is checked from outside"),
    Check::new(Kernel, High, "kernel.log", log)
        .title("The kernel's log cannot be read")
        .attempts("syslog(2): buffer size and read all")
        .expects(REFUSED)
        .on_host(OnHost::BreachesForRoot),
    Check::new(Kernel, Critical, "kernel.ports", ports)
        .title("Hardware ports cannot be touched")
        .attempts("iopl, ioperm")
        .expects(REFUSED)
        .on_host(OnHost::Depends),
    Check::new(Kernel, High, "kernel.accounting", accounting)
        .title("Accounting and quotas cannot be changed")
        .attempts("acct of no file, quotactl on no device")
        .expects(REFUSED),
    Check::new(Kernel, High, "kernel.fanotify", fanotify)
        .title("Files of the whole machine cannot be watched")
        .attempts("fanotify_init of the permission class")
        .expects(REFUSED)
        .on_host(OnHost::Depends),
    Check::new(Kernel, Low, "kernel.personality", personality)
        .title("Old personalities are closed")
        .attempts("personality with READ_IMPLIES_EXEC")
        .expects(REFUSED),
    Check::new(Kernel, Medium, "kernel.obsolete", obsolete)
        .title("Calls of old kernels are closed")
        .attempts("uselib, _sysctl, nfsservctl, lookup_dcookie, create_module, ustat, sysfs")
        .expects(REFUSED),
    Check::new(Kernel, Medium, "kernel.memory-policy", memory_policy)
        .title("Pages of others cannot be moved")
        .attempts("move_pages and migrate_pages of process 1")
        .expects(REFUSED),
];

/// The first attempt that is not refused decides.
fn every_refused<const N: usize>(attempts: [(&str, sys::Result); N]) -> Outcome {
    let mut answers = Vec::new();
    for (name, result) in attempts {
        let outcome = sys::refused(result);
        if outcome.verdict != crate::finding::Verdict::Held {
            return Outcome {
                observed: format!("{name}: {}", outcome.observed),
                ..outcome
            };
        }
        answers.push(outcome.observed);
    }
    answers.dedup();
    Outcome::held(answers.join(", "))
}

fn bpf(_: &Context) -> Outcome {
    // BPF_MAP_CREATE of an array of one 4-byte value: type, key size, value size, entries.
    let attr: Vec<u8> = [2_u32, 4, 4, 1]
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .chain([0; 112])
        .collect();
    every_refused([
        ("map create", sys!(libc::SYS_bpf, 0, &attr[..], 128)),
        ("unknown command", sys!(libc::SYS_bpf, 9999, &attr[..], 128)),
    ])
}

fn io_uring(_: &Context) -> Outcome {
    let mut params = [0_u8; 256];
    sys::refused(sys!(libc::SYS_io_uring_setup, 1, &mut params[..]))
}

fn userfaultfd(_: &Context) -> Outcome {
    const USER_MODE_ONLY: i32 = 1;
    every_refused([
        (
            "user mode only",
            sys!(libc::SYS_userfaultfd, USER_MODE_ONLY | libc::O_CLOEXEC),
        ),
        ("any fault", sys!(libc::SYS_userfaultfd, libc::O_CLOEXEC)),
    ])
}

fn perf(_: &Context) -> Outcome {
    // `struct perf_event_attr`: PERF_TYPE_SOFTWARE, size, PERF_COUNT_SW_CPU_CLOCK, and in the flags word at byte 40
    // exclude_kernel and exclude_hv, the least that can be asked.
    let mut attr = [0_u8; 112];
    attr[0..4].copy_from_slice(&1_u32.to_ne_bytes());
    attr[4..8].copy_from_slice(&112_u32.to_ne_bytes());
    attr[40..48].copy_from_slice(&(1_u64 << 5 | 1 << 6).to_ne_bytes());
    sys::refused(sys!(libc::SYS_perf_event_open, &attr[..], 0, -1, -1, 0))
}

fn modules(_: &Context) -> Outcome {
    every_refused([
        (
            "init_module",
            sys!(libc::SYS_init_module, Arg::Null, 0, c""),
        ),
        ("finit_module", sys!(libc::SYS_finit_module, -1, c"", 0)),
        (
            "delete_module",
            sys!(
                libc::SYS_delete_module,
                c"sandyard_probe_none",
                libc::O_NONBLOCK
            ),
        ),
    ])
}

fn kexec(_: &Context) -> Outcome {
    every_refused([
        (
            "kexec_load",
            sys!(libc::SYS_kexec_load, 0, 9999, Arg::Null, 0xffff_u32),
        ),
        #[cfg(target_arch = "x86_64")]
        (
            "kexec_file_load",
            sys!(libc::SYS_kexec_file_load, -1, -1, 0, Arg::Null, 0xffff_u32),
        ),
    ])
}

fn reboot(_: &Context) -> Outcome {
    // The kernel asks for the capability first and checks the magic number after that, so this never reboots.
    sys::refused(sys!(libc::SYS_reboot, 0, 0, 0, Arg::Null))
}

fn swap(_: &Context) -> Outcome {
    every_refused([
        ("swapon", sys!(libc::SYS_swapon, c"/sandyard-probe-none", 0)),
        ("swapoff", sys!(libc::SYS_swapoff, c"/sandyard-probe-none")),
    ])
}

fn clock(_: &Context) -> Outcome {
    // ADJ_TICK with a tick of 0 is out of range; the capability is asked for before that is seen.
    let mut timex = [0_u8; 256];
    timex[0..4].copy_from_slice(&0x4000_u32.to_ne_bytes());
    every_refused([
        (
            "settimeofday",
            sys!(libc::SYS_settimeofday, Arg::Null, Arg::Null),
        ),
        ("adjtimex", sys!(libc::SYS_adjtimex, &mut timex[..])),
    ])
}

fn hostname(_: &Context) -> Outcome {
    sys::refused(sys!(libc::SYS_sethostname, &b"escaped"[..], 7))
}

fn log(_: &Context) -> Outcome {
    let mut text = [0_u8; 256];
    every_refused([
        ("size", sys!(libc::SYS_syslog, 10, Arg::Null, 0)),
        ("read all", sys!(libc::SYS_syslog, 3, &mut text[..], 256)),
    ])
}

#[cfg(target_arch = "x86_64")]
fn ports(_: &Context) -> Outcome {
    every_refused([
        ("iopl", sys!(libc::SYS_iopl, 3)),
        ("ioperm", sys!(libc::SYS_ioperm, 0x80, 1, 1)),
    ])
}

#[cfg(not(target_arch = "x86_64"))]
fn ports(_: &Context) -> Outcome {
    Outcome::held("this processor has none")
}

fn accounting(_: &Context) -> Outcome {
    every_refused([
        ("acct", sys!(libc::SYS_acct, c"/sandyard-probe-none")),
        (
            "quotactl",
            sys!(
                libc::SYS_quotactl,
                0x80_0002_u32 << 8,
                c"/sandyard-probe-none",
                0,
                Arg::Null
            ),
        ),
    ])
}

fn fanotify(_: &Context) -> Outcome {
    const FAN_CLASS_CONTENT: i32 = 4;
    sys::refused(sys!(
        libc::SYS_fanotify_init,
        FAN_CLASS_CONTENT,
        libc::O_RDONLY
    ))
}

fn personality(_: &Context) -> Outcome {
    const READ_IMPLIES_EXEC: i32 = 0x40_0000;
    sys::refused(sys!(libc::SYS_personality, READ_IMPLIES_EXEC))
}

#[cfg(target_arch = "x86_64")]
fn obsolete(_: &Context) -> Outcome {
    every_refused([
        ("uselib", sys!(libc::SYS_uselib, c"/sandyard-probe-none")),
        ("_sysctl", sys!(libc::SYS__sysctl, Arg::Null)),
        (
            "nfsservctl",
            sys!(libc::SYS_nfsservctl, 0, Arg::Null, Arg::Null),
        ),
        (
            "lookup_dcookie",
            sys!(libc::SYS_lookup_dcookie, 0, Arg::Null, 0),
        ),
        ("create_module", sys!(174, c"x", 0)),
        ("ustat", sys!(libc::SYS_ustat, 0, Arg::Null)),
        ("sysfs", sys!(libc::SYS_sysfs, 3)),
    ])
}

#[cfg(not(target_arch = "x86_64"))]
fn obsolete(_: &Context) -> Outcome {
    Outcome::held("this processor's table never had them")
}

fn memory_policy(_: &Context) -> Outcome {
    every_refused([
        (
            "move_pages",
            sys!(
                libc::SYS_move_pages,
                1,
                0,
                Arg::Null,
                Arg::Null,
                Arg::Null,
                0
            ),
        ),
        (
            "migrate_pages",
            sys!(libc::SYS_migrate_pages, 1, 0, Arg::Null, Arg::Null),
        ),
    ])
}
