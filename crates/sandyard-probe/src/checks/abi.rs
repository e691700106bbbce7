//! Other entry points of the same kernel: 32-bit system calls, x32, and a tracer that changes the number after the filter.

use crate::check::{Check, OnHost, Outcome};
use crate::context::Context;
use crate::finding::{Group::Kernel, Severity::High};

pub(super) const CHECKS: &[Check] = &[
    Check::new(Kernel, High, "abi.x32", x32)
        .title("The x32 table is closed")
        .attempts("getpid and bpf with the x32 bit")
        .expects("refused or unknown")
        .on_host(OnHost::Depends),
    Check::new(Kernel, High, "abi.i386", i386)
        .title("The 32-bit table is closed, or filtered as well")
        .attempts("int 0x80: getpid, bpf, io_uring_setup, userfaultfd, keyctl, unshare, mount")
        .expects("killed, refused or unknown")
        .on_host(OnHost::Depends),
    Check::new(Kernel, High, "abi.tracer", tracer)
        .title("A tracer cannot change a system call after the filter has checked it")
        .attempts("trace a child and turn its getppid into bpf at the entry of the call")
        .expects("the filter sees what is run"),
];

#[cfg(not(target_arch = "x86_64"))]
mod other_architectures {
    use super::{Context, Outcome};

    pub(super) fn none(_: &Context) -> Outcome {
        Outcome::held("this processor has no such system call table")
    }
}
#[cfg(not(target_arch = "x86_64"))]
use other_architectures::{none as i386, none as tracer, none as x32};

#[cfg(target_arch = "x86_64")]
use x86_64::{i386, tracer, x32};

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::time::Duration;

    use super::{Context, Outcome};
    use crate::child::{Ended, isolated, wait};
    use crate::sys::{Errno, sys};

    const X32_BIT: i64 = 0x4000_0000;

    pub(super) fn x32(_: &Context) -> Outcome {
        let pid = sys!(X32_BIT | libc::SYS_getpid);
        let bpf = sys!(X32_BIT | libc::SYS_bpf, 9999, &[0_u8; 128][..], 128);
        match (pid, bpf) {
            (Ok(pid), _) => Outcome::breached(format_args!("getpid gave {pid}")),
            (Err(one), Err(other)) => Outcome::held(format_args!("{one}, {other}")),
            (_, Ok(value)) => Outcome::breached(format_args!("bpf gave {value}")),
        }
    }

    /// Numbers of the 32-bit table that must not work, with arguments that change nothing.
    const CALLS: [(&str, u32, u32); 6] = [
        ("bpf", 357, 9999),
        ("io_uring_setup", 425, 0),
        ("userfaultfd", 374, 1),
        ("keyctl", 288, 0),
        ("unshare", 310, libc::CLONE_NEWUSER as u32),
        ("perf_event_open", 336, 0),
    ];

    pub(super) fn i386(_: &Context) -> Outcome {
        let mut reached = Vec::new();
        let mut answers = Vec::new();
        for (name, number, argument) in [("getpid", 20, 0)].into_iter().chain(CALLS) {
            match isolated(Duration::from_secs(20), || int80(number, argument)) {
                Ok(Ended::Returned(value)) if name == "getpid" => {
                    answers.push(format!("getpid gave {value}"))
                }
                Ok(Ended::Returned(value)) if is_refusal(value) => {
                    answers.push(Errno(-value).to_string())
                }
                Ok(Ended::Returned(value)) => reached.push(format!("{name} gave {value}")),
                Ok(Ended::Signalled(signal)) => answers.push(format!("signal {signal}")),
                other => answers.push(format!("{other:?}")),
            }
        }
        answers.dedup();
        Outcome::breached_by(&reached, answers.join(", "))
    }

    fn is_refusal(value: i32) -> bool {
        value < 0 && Errno(-value).is_refusal()
    }

    fn int80(number: u32, argument: u32) -> i32 {
        let mut value = number;
        // SAFETY: a system call with one number and no pointer; the kernel keeps the stack and, for int 0x80, may
        // clear r8 to r11. rbx is kept by hand, since the compiler may own it.
        unsafe {
            std::arch::asm!(
                "push rbx",
                "mov ebx, {argument:e}",
                "int 0x80",
                "pop rbx",
                argument = in(reg) argument,
                inout("eax") value,
                in("ecx") 0,
                in("edx") 0,
                in("esi") 0,
                in("edi") 0,
                lateout("r8") _,
                lateout("r9") _,
                lateout("r10") _,
                lateout("r11") _,
            );
        }
        value.cast_signed()
    }

    /// Where the number of the call is among the tracee's registers: `offsetof(struct user, regs.orig_rax)`.
    const ORIG_RAX: i64 = 15 * 8;
    const RAX: i64 = 10 * 8;

    pub(super) fn tracer(_: &Context) -> Outcome {
        let direct = sys!(libc::SYS_bpf, 9999, &[0_u8; 128][..], 128);
        let Err(direct) = direct else {
            return Outcome::breached("bpf works without tracing");
        };
        if !direct.is_refusal() {
            return Outcome::inconclusive(format_args!(
                "bpf is not refused in the first place: {direct}"
            ));
        }
        // SAFETY: single-threaded; the child makes plain calls and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            tracee();
        }
        let swapped = swap_call(child);
        // SAFETY: our own child.
        unsafe { libc::kill(child, libc::SIGKILL) };
        wait(child);
        match swapped {
            Err(errno) => Outcome::held(format_args!("tracing was refused: {errno}")),
            Ok(None) => Outcome::held("the filter killed the child"),
            Ok(Some(answer)) if is_refusal(answer) => Outcome::held(Errno(-answer)),
            Ok(Some(answer)) => {
                Outcome::breached(format_args!("the swapped call answered {answer}"))
            }
        }
    }

    fn tracee() -> ! {
        let _ = sys!(libc::SYS_ptrace, libc::PTRACE_TRACEME, 0, 0, 0);
        // SAFETY: stops and ends this child only.
        unsafe {
            libc::raise(libc::SIGSTOP);
            libc::syscall(libc::SYS_getppid, 9999, 0, 0);
            libc::_exit(0)
        }
    }

    /// Turns the first getppid of a stopped child into bpf and returns what that gave.
    fn swap_call(child: i32) -> Result<Option<i32>, Errno> {
        let go_on = || -> Result<i32, Errno> {
            sys!(libc::SYS_ptrace, libc::PTRACE_SYSCALL, child, 0, 0)?;
            Ok(wait(child))
        };
        if !libc::WIFSTOPPED(wait(child)) {
            return Err(Errno(libc::ESRCH));
        }
        for _ in 0..64 {
            if !libc::WIFSTOPPED(go_on()?) {
                return Err(Errno(libc::ESRCH));
            }
            if peek(child, ORIG_RAX)? == libc::SYS_getppid {
                sys!(
                    libc::SYS_ptrace,
                    libc::PTRACE_POKEUSER,
                    child,
                    ORIG_RAX,
                    libc::SYS_bpf
                )?;
                // A filter that kills leaves nothing to stop at.
                if !libc::WIFSTOPPED(go_on()?) {
                    return Ok(None);
                }
                return Ok(Some(peek(child, RAX)? as i32));
            }
        }
        Err(Errno(libc::ESRCH))
    }

    /// The raw system call stores the word where the fourth argument points.
    fn peek(child: i32, offset: i64) -> Result<i64, Errno> {
        let mut word = [0_u8; 8];
        sys!(
            libc::SYS_ptrace,
            libc::PTRACE_PEEKUSER,
            child,
            offset,
            &mut word[..]
        )?;
        Ok(i64::from_ne_bytes(word))
    }
}
