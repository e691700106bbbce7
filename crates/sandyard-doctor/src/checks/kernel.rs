//! The kernel: version, process creation, system call filter, root's capabilities.

use rustix::io::Errno;
use sandyard_confine::caps;
use sandyard_confine::seccomp::Filter;

use crate::attempt::{Failure, StepExt, attempt, checked};
use crate::host::Host;
use crate::report::{Check, Need};

/// The oldest kernel with all features that are checked: it introduced id-mapped mounts.
const OLDEST: (u32, u32) = (5, 12);

pub(super) fn checks(host: &Host) -> Vec<Check> {
    let mut checks = vec![version(), clone(), seccomp()];
    if host.is_root() {
        checks.push(privilege());
    }
    checks
}

fn version() -> Check {
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy().into_owned();
    let check = Check::ok("kernel", Need::Required)
        .purpose("everything that Sandyard needs from Linux")
        .detail(&release);
    match parse_version(&release) {
        Some(version) if version < OLDEST => check.partial(
            format!("{release} is older than {}.{}", OLDEST.0, OLDEST.1),
            "sudo apt-get install linux-image-generic || sudo dnf upgrade kernel",
        ),
        _ => check,
    }
}

fn parse_version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|other: char| !other.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Creates a child with `clone3` and a pidfd, and waits for it by the pidfd.
fn clone() -> Check {
    let check = Check::ok("clone3-pidfd", Need::Required)
        .purpose("starting and ending sandboxes without races over process ids")
        .detail("works");
    let tried = attempt(|| {
        let mut pidfd: libc::c_int = -1;
        let mut arguments = [0_u64; 8];
        arguments[0] = libc::CLONE_PIDFD as u64;
        arguments[1] = &raw mut pidfd as u64;
        arguments[4] = libc::SIGCHLD as u64;
        // SAFETY: like fork; the arguments are live and of the size told; the child leaves at once.
        let pid = unsafe {
            libc::syscall(
                libc::SYS_clone3,
                arguments.as_ptr(),
                size_of_val(&arguments),
            )
        };
        if checked(pid).step("clone3")? == 0 {
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: an all-zero siginfo is a valid place to write one into.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: `info` is live; the descriptor is the kernel's.
        let waited = unsafe {
            libc::waitid(
                libc::P_PIDFD,
                pidfd as libc::id_t,
                &raw mut info,
                libc::WEXITED,
            )
        };
        checked(waited.into()).step("wait for a pidfd").map(|_| ())
    });
    match tried {
        Ok(()) => check,
        Err(failure) => check.missing(
            failure.text(),
            "upgrade the kernel to 5.4 or later; if this is a container, start it with `--security-opt seccomp=unconfined`",
        ),
    }
}

/// Installs the real filter in a child and checks that it refuses a call.
fn seccomp() -> Check {
    let check = Check::ok("seccomp", Need::Required)
        .purpose("sandboxes cannot make the system calls that most kernel exploits need")
        .detail("the filter can be installed and refuses calls");
    let filter = Filter::compile();
    let tried = attempt(|| {
        let refused = Failure::new("install the filter", Errno::INVAL);
        filter.install_with_no_new_privs().map_err(|_| refused)?;
        // SAFETY: null arguments; the filter answers before the kernel looks.
        let result = checked(unsafe { libc::syscall(libc::SYS_keyctl, 0, 0, 0) });
        match result {
            Err(Errno::NOSYS) => Ok(()),
            _ => Err(Failure::new("check that a call is refused", Errno::INVAL)),
        }
    });
    match tried {
        Ok(()) => check,
        Err(failure) => check.missing(
            failure.text(),
            "install a kernel built with CONFIG_SECCOMP_FILTER=y",
        ),
    }
}

/// Checks which of root's capabilities an outer container has removed.
fn privilege() -> Check {
    // Without these, a sandbox cannot have a uid range of its own.
    const NEEDED: [(u32, &str); 8] = [
        (21, "SYS_ADMIN"),
        (7, "SETUID"),
        (6, "SETGID"),
        (0, "CHOWN"),
        (1, "DAC_OVERRIDE"),
        (3, "FOWNER"),
        (31, "SETFCAP"),
        (5, "KILL"),
    ];
    let effective = caps::current().map_or(0, |sets| sets.effective);
    let has = |number: u32| effective & (1 << number) != 0;
    let check = Check::ok("privilege", Need::Required)
        .purpose("the capabilities that the launcher uses")
        .detail("all present");
    let lacking: Vec<&str> = NEEDED
        .iter()
        .filter(|(number, _)| !has(*number))
        .map(|(_, name)| *name)
        .collect();
    if !lacking.is_empty() {
        let fix = format!(
            "start the outer container with `--privileged`, or with `--cap-add {}`",
            lacking.join(" --cap-add ")
        );
        return check.missing(format!("root does not have {}", lacking.join(", ")), fix);
    }
    if !has(24) {
        return Check {
            detail: "all present except SYS_RESOURCE: hard resource limits cannot be raised"
                .to_owned(),
            ..check
        };
    }
    check
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_read_from_any_release_name() {
        assert_eq!(parse_version("6.18.44-fc-v490"), Some((6, 18)));
        assert_eq!(parse_version("5.4.0-150-generic"), Some((5, 4)));
        assert_eq!(parse_version("odd"), None);
    }
}
