//! Processes of the host: seen, signalled, traced, read.

use std::fs;

use crate::check::{Check, OnHost, Outcome};
use crate::context::Context;
use crate::finding::{
    Group::Processes,
    Severity::{Critical, High},
};
use crate::plan::HostProcess;
use crate::search::{contains, pids, read_start, start_time};
use crate::sys::{self, Errno, sys};

pub(super) const CHECKS: &[Check] = &[
    Check::new(Processes, High, "processes.visible", visible)
        .title("Processes of the host are not visible")
        .attempts("look for the planted process, and for kernel threads, in /proc")
        .expects("only what started in the sandbox")
        .on_host(OnHost::Breaches),
    Check::new(Processes, Critical, "processes.environment", environment)
        .title("No environment or command line of the host is readable")
        .attempts("look for the planted word in the environment and command line of every process")
        .expects("not found")
        .on_host(OnHost::Breaches),
    Check::new(Processes, Critical, "processes.signal", signal)
        .title("The host's process cannot be signalled")
        .attempts("kill(pid, 0) and pidfd_open of the planted process")
        .expects("no such process")
        .on_host(OnHost::Breaches),
    Check::new(Processes, Critical, "processes.trace", trace)
        .title("The host's process cannot be traced")
        .attempts("PTRACE_SEIZE of the planted process")
        .expects("no such process")
        .on_host(OnHost::BreachesForRoot),
    Check::new(Processes, Critical, "processes.memory", memory)
        .title("The host's process cannot be read")
        .attempts("process_vm_readv and /proc/<pid>/mem of the planted process")
        .expects("no such process")
        .on_host(OnHost::BreachesForRoot),
    Check::new(Processes, Critical, "processes.descriptors", descriptors)
        .title("The host's process keeps its descriptors")
        .attempts("pidfd_getfd of the planted process's standard output")
        .expects("no such process")
        .on_host(OnHost::BreachesForRoot),
];

/// Runs `attempt` on the planted pid. Inside, that number may by chance be one of our own, which says nothing.
fn on_process(context: &Context, attempt: impl FnOnce(&HostProcess) -> Outcome) -> Outcome {
    match &context.plan.process {
        None => Outcome::inconclusive("no process was planted"),
        Some(process)
            if start_time(process.pid).is_some_and(|start| start != process.start_time) =>
        {
            Outcome::held("that process id belongs to a process of the sandbox")
        }
        Some(process) => attempt(process),
    }
}

fn expect_no_process(result: sys::Result) -> Outcome {
    match result {
        Err(errno) if errno.is_refusal() || errno.0 == libc::ESRCH => Outcome::held(errno),
        Err(errno) => Outcome::inconclusive(errno),
        Ok(_) => Outcome::breached("it worked"),
    }
}

fn visible(context: &Context) -> Outcome {
    let Some(process) = &context.plan.process else {
        return Outcome::inconclusive("no process was planted");
    };
    if start_time(process.pid) == Some(process.start_time) {
        return Outcome::breached(format_args!(
            "process {} of the host is in /proc",
            process.pid
        ));
    }
    // Kernel threads have no program and live in the host's pid namespace only.
    let foreign: Vec<String> = pids()
        .into_iter()
        .filter(|pid| is_kernel_thread(*pid))
        .map(|pid| format!("kernel thread {pid}"))
        .collect();
    Outcome::breached_by(
        &foreign,
        format_args!("{} processes, none of the host", pids().len()),
    )
}

fn is_kernel_thread(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    crate::identity::field(&status, "Kthread") == Some("1")
}

fn environment(context: &Context) -> Outcome {
    let Some(process) = &context.plan.process else {
        return Outcome::inconclusive("no process was planted");
    };
    // The probe's own command line contains the plan with the marker, and so does that of its parent.
    let own = own_session();
    let mut found = Vec::new();
    for pid in pids() {
        for file in ["environ", "cmdline"] {
            let content = read_start(format!("/proc/{pid}/{file}")).unwrap_or_default();
            if contains(&content, &process.marker) && !(file == "cmdline" && own.contains(&pid)) {
                found.push(format!("`/proc/{pid}/{file}`"));
            }
        }
    }
    Outcome::breached_by(&found, format_args!("{} processes searched", pids().len()))
}

/// We and our ancestors.
fn own_session() -> Vec<i32> {
    let parent = |pid: i32| -> Option<i32> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        crate::identity::field(&status, "PPid")?.parse().ok()
    };
    let own = i32::try_from(std::process::id()).ok();
    std::iter::successors(own, |pid| parent(*pid).filter(|parent| *parent > 0)).collect()
}

fn signal(context: &Context) -> Outcome {
    on_process(context, |process| {
        let killed = sys!(libc::SYS_kill, process.pid, 0);
        expect_no_process(killed.or_else(|_| sys!(libc::SYS_pidfd_open, process.pid, 0)))
    })
}

fn trace(context: &Context) -> Outcome {
    on_process(context, |process| {
        let seized = sys!(libc::SYS_ptrace, libc::PTRACE_SEIZE, process.pid, 0, 0);
        if seized.is_ok() {
            let _ = sys!(libc::SYS_ptrace, libc::PTRACE_DETACH, process.pid, 0, 0);
        }
        expect_no_process(seized)
    })
}

fn memory(context: &Context) -> Outcome {
    on_process(context, |process| {
        if sys::open(format!("/proc/{}/mem", process.pid), libc::O_RDONLY).is_ok() {
            return Outcome::breached("opened its memory file");
        }
        let mut byte = [0_u8; 1];
        let local = libc::iovec {
            iov_base: byte.as_mut_ptr().cast(),
            iov_len: 1,
        };
        // An address that is never mapped: EFAULT would mean that access was allowed.
        let remote = libc::iovec {
            iov_base: std::ptr::without_provenance_mut(8),
            iov_len: 1,
        };
        // SAFETY: one vector each, both live; the kernel writes at most the one byte of `byte`.
        let read = unsafe {
            libc::process_vm_readv(process.pid, &raw const local, 1, &raw const remote, 1, 0)
        };
        match (read, Errno::last()) {
            (-1, errno) if errno.0 == libc::EFAULT => {
                Outcome::breached("the kernel tried to read it")
            }
            (-1, errno) => expect_no_process(Err(errno)),
            _ => Outcome::breached("it was read"),
        }
    })
}

fn descriptors(context: &Context) -> Outcome {
    on_process(context, |process| {
        let pidfd = sys!(libc::SYS_pidfd_open, process.pid, 0);
        expect_no_process(pidfd.and_then(|pidfd| sys!(libc::SYS_pidfd_getfd, pidfd, 1, 0)))
    })
}
