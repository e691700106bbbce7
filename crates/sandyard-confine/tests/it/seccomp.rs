//! The filter as the kernel applies it.

use sandyard_confine::seccomp::Filter;

use crate::child::{self, message};

/// Makes a system call with up to three arguments; gives the error number or 0.
fn call(number: i64, arguments: [u64; 3]) -> i32 {
    let [first, second, third] = arguments;
    // SAFETY: all calls made here get plain numbers or null pointers, which the kernel refuses alone.
    match unsafe { libc::syscall(number, first, second, third, 0_u64, 0_u64, 0_u64) } {
        -1 => std::io::Error::last_os_error().raw_os_error().unwrap_or(-1),
        _ => 0,
    }
}

#[test]
fn refused_calls_give_the_error_that_the_policy_states() {
    let filter = Filter::compile();
    let refused: &[(&str, i64, [u64; 3], i32)] = &[
        ("mount", libc::SYS_mount, [0; 3], libc::EPERM),
        ("umount2", libc::SYS_umount2, [0; 3], libc::EPERM),
        ("pivot_root", libc::SYS_pivot_root, [0; 3], libc::EPERM),
        ("fsopen", libc::SYS_fsopen, [0; 3], libc::EPERM),
        ("move_mount", libc::SYS_move_mount, [0; 3], libc::EPERM),
        ("open_tree", libc::SYS_open_tree, [0; 3], libc::EPERM),
        (
            "mount_setattr",
            libc::SYS_mount_setattr,
            [0; 3],
            libc::EPERM,
        ),
        ("setns", libc::SYS_setns, [0; 3], libc::EPERM),
        (
            "unshare user",
            libc::SYS_unshare,
            [libc::CLONE_NEWUSER as u64, 0, 0],
            libc::EPERM,
        ),
        ("unshare time", libc::SYS_unshare, [0x80, 0, 0], libc::EPERM),
        (
            "clone user",
            libc::SYS_clone,
            [libc::CLONE_NEWUSER as u64 | 17, 0, 0],
            libc::EPERM,
        ),
        (
            "clone net",
            libc::SYS_clone,
            [libc::CLONE_NEWNET as u64 | 17, 0, 0],
            libc::EPERM,
        ),
        ("clone3", libc::SYS_clone3, [0; 3], libc::ENOSYS),
        ("bpf", libc::SYS_bpf, [0; 3], libc::EPERM),
        (
            "perf_event_open",
            libc::SYS_perf_event_open,
            [0; 3],
            libc::EPERM,
        ),
        ("userfaultfd", libc::SYS_userfaultfd, [0; 3], libc::EPERM),
        (
            "io_uring_setup",
            libc::SYS_io_uring_setup,
            [0; 3],
            libc::ENOSYS,
        ),
        ("keyctl", libc::SYS_keyctl, [0; 3], libc::ENOSYS),
        ("add_key", libc::SYS_add_key, [0; 3], libc::ENOSYS),
        ("request_key", libc::SYS_request_key, [0; 3], libc::ENOSYS),
        ("finit_module", libc::SYS_finit_module, [0; 3], libc::EPERM),
        ("kexec_load", libc::SYS_kexec_load, [0; 3], libc::EPERM),
        ("reboot", libc::SYS_reboot, [0; 3], libc::EPERM),
        ("swapon", libc::SYS_swapon, [0; 3], libc::EPERM),
        ("syslog", libc::SYS_syslog, [3, 0, 0], libc::EPERM),
        (
            "open_by_handle_at",
            libc::SYS_open_by_handle_at,
            [0; 3],
            libc::EPERM,
        ),
        (
            "clock_settime",
            libc::SYS_clock_settime,
            [0; 3],
            libc::EPERM,
        ),
        ("sethostname", libc::SYS_sethostname, [0; 3], libc::EPERM),
        (
            "fanotify_init",
            libc::SYS_fanotify_init,
            [0; 3],
            libc::EPERM,
        ),
        ("quotactl", libc::SYS_quotactl, [0; 3], libc::EPERM),
        (
            "personality",
            libc::SYS_personality,
            [0x40_0000, 0, 0],
            libc::EPERM,
        ),
        (
            "ioctl TIOCSTI",
            libc::SYS_ioctl,
            [0, 0x5412, 0],
            libc::EPERM,
        ),
        (
            "ioctl TIOCSTI with high bits",
            libc::SYS_ioctl,
            [0, 0x1_0000_5412, 0],
            libc::EPERM,
        ),
        (
            "ioctl TIOCLINUX",
            libc::SYS_ioctl,
            [0, 0x541c, 0],
            libc::EPERM,
        ),
        (
            "ioctl TIOCSETD",
            libc::SYS_ioctl,
            [0, 0x5423, 0],
            libc::EPERM,
        ),
        (
            "socket packet",
            libc::SYS_socket,
            [17, 3, 0],
            libc::EAFNOSUPPORT,
        ),
        (
            "socket alg",
            libc::SYS_socket,
            [38, 5, 0],
            libc::EAFNOSUPPORT,
        ),
        (
            "socket vsock",
            libc::SYS_socket,
            [40, 1, 0],
            libc::EAFNOSUPPORT,
        ),
        (
            "socket netfilter",
            libc::SYS_socket,
            [16, 3, 12],
            libc::EPROTONOSUPPORT,
        ),
        (
            "socket sctp",
            libc::SYS_socket,
            [2, 1, 132],
            libc::EPROTONOSUPPORT,
        ),
        ("unknown call", 5000, [0; 3], libc::ENOSYS),
        ("x32 getpid", 0x4000_0027, [0; 3], libc::ENOSYS),
    ];
    child::run(|| {
        filter.install().map_err(message)?;
        for (name, number, arguments, wanted) in refused {
            let got = call(*number, *arguments);
            if got != *wanted {
                return Err(format!("{name}: error {got}, not {wanted}"));
            }
        }
        Ok(())
    });
}

#[test]
fn a_socket_cannot_be_made_to_linger() {
    let filter = Filter::compile();
    child::run(|| {
        filter.install().map_err(message)?;
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").map_err(message)?;
        let long = Some(std::time::Duration::from_secs(600));
        rustix::net::sockopt::set_socket_linger(&socket, long).map_err(message)?;
        rustix::net::sockopt::set_socket_broadcast(&socket, true).map_err(message)?;
        let lingers = rustix::net::sockopt::socket_linger(&socket).map_err(message)?;
        let broadcasts = rustix::net::sockopt::socket_broadcast(&socket).map_err(message)?;
        match (lingers, broadcasts) {
            (None, true) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
}

#[test]
fn allowed_calls_reach_the_kernel() {
    let filter = Filter::compile();
    let allowed: &[(&str, i64, [u64; 3])] = &[
        ("getpid", libc::SYS_getpid, [0; 3]),
        ("socket unix", libc::SYS_socket, [1, 1, 0]),
        ("socket tcp", libc::SYS_socket, [2, 1, 6]),
        ("socket udp over 6", libc::SYS_socket, [10, 2, 0]),
        ("socket route", libc::SYS_socket, [16, 3, 0]),
        (
            "personality query",
            libc::SYS_personality,
            [0xffff_ffff, 0, 0],
        ),
        (
            "unshare files",
            libc::SYS_unshare,
            [libc::CLONE_FILES as u64, 0, 0],
        ),
    ];
    child::run(|| {
        filter.install().map_err(message)?;
        for (name, number, arguments) in allowed {
            match call(*number, *arguments) {
                0 => {}
                errno => return Err(format!("{name}: error {errno}")),
            }
        }
        // The kernel's own answer, not the filter's.
        match call(libc::SYS_ptrace, [libc::PTRACE_CONT as u64, 1, 0]) {
            libc::ESRCH => Ok(()),
            errno => Err(format!("ptrace: error {errno}")),
        }
    });
}

#[test]
fn thread_starts_though_clone3_is_refused() {
    let filter = Filter::compile();
    child::run(|| {
        filter.install().map_err(message)?;
        let thread = std::thread::Builder::new().spawn(|| 42).map_err(message)?;
        thread
            .join()
            .map_err(|_| "thread died".to_owned())
            .map(|_| ())
    });
}

#[test]
fn without_privilege_the_filter_needs_no_new_privs() {
    let filter = Filter::compile();
    child::run(|| {
        // SAFETY: a plain number; the child has one thread.
        if unsafe { libc::setuid(65534) } != 0 {
            return Err("setuid".to_owned());
        }
        if filter.install().is_ok() {
            return Err("installed with no right to".to_owned());
        }
        filter.install_with_no_new_privs().map_err(message)?;
        match call(libc::SYS_bpf, [0; 3]) {
            libc::EPERM => Ok(()),
            errno => Err(format!("bpf: error {errno}")),
        }
    });
}

#[test]
fn installing_as_root_leaves_setuid_programs_working() {
    let filter = Filter::compile();
    child::run(|| {
        filter.install().map_err(message)?;
        match rustix::thread::no_new_privs().map_err(message)? {
            false => Ok(()),
            true => Err("no_new_privs was set".to_owned()),
        }
    });
}

#[cfg(target_arch = "x86_64")]
#[test]
fn call_through_the_32_bit_table_ends_the_process() {
    let filter = Filter::compile();
    let mut child = child::start(|| {
        filter.install().map_err(message)?;
        let result: u64;
        // SAFETY: getpid (20) through the 32-bit entry touches no memory; rbx is not used.
        unsafe { std::arch::asm!("int 0x80", inlateout("rax") 20_u64 => result) };
        Err(format!("it answered {result}"))
    });
    let (status, report) = child.result();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(libc::SIGSYS),
        "{report}"
    );
}
