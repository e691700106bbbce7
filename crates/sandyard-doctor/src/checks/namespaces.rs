//! Namespaces, each created inside a new user namespace, as for a sandbox.

use rustix::process::Pid;
use rustix::thread::UnshareFlags;

use crate::attempt::{Attempt, StepExt, attempt, checked, die_with_parent, last_errno};
use crate::host::Host;
use crate::report::{Check, Need};

const KINDS: [(&str, &str, UnshareFlags, Need); 6] = [
    (
        "mount",
        "each sandbox has its own file system",
        UnshareFlags::NEWNS,
        Need::Required,
    ),
    (
        "pid",
        "each sandbox sees only its own processes",
        UnshareFlags::NEWPID,
        Need::Required,
    ),
    (
        "network",
        "a sandbox reaches the network only through the gateway",
        UnshareFlags::NEWNET,
        Need::Required,
    ),
    (
        "ipc",
        "each sandbox has its own shared memory and message queues",
        UnshareFlags::NEWIPC,
        Need::Required,
    ),
    (
        "uts",
        "each sandbox has its own host name",
        UnshareFlags::NEWUTS,
        Need::Required,
    ),
    (
        "cgroup",
        "cgroup names of the host are hidden from sandboxes",
        UnshareFlags::NEWCGROUP,
        Need::Recommended,
    ),
];

pub(super) fn checks(host: &Host) -> Vec<Check> {
    let mut checks = vec![user(host)];
    checks.extend(KINDS.iter().map(|kind| check_kind(host, kind)));
    checks
}

fn check_kind(
    host: &Host,
    (name, purpose, flags, need): &(&str, &str, UnshareFlags, Need),
) -> Check {
    let check = Check::ok(&format!("namespace-{name}"), *need)
        .purpose(purpose)
        .detail("works");
    match attempt(|| enter_user(host, *flags)) {
        Ok(()) => check,
        Err(failure) => {
            let fix = user_fix(host).unwrap_or_else(|| {
                format!(
                    "sudo sysctl -w user.max_{}_namespaces=65536",
                    sysctl_name(name)
                )
            });
            check.missing(failure.text(), fix)
        }
    }
}

fn sysctl_name(kind: &str) -> &str {
    match kind {
        "mount" => "mnt",
        "network" => "net",
        other => other,
    }
}

/// A user namespace must also give capabilities inside: Ubuntu's restriction lets a process create one without any.
fn user(host: &Host) -> Check {
    let check = Check::ok("user-namespaces", Need::Required)
        .purpose("root inside a sandbox has no rights on the host")
        .detail("work, and give capabilities inside");
    let tried = attempt(|| {
        enter_user(host, UnshareFlags::NEWUTS)?;
        rustix::system::sethostname(b"doctor").step("use a capability in a user namespace")
    });
    match tried {
        Ok(()) => check,
        Err(failure) => {
            let fix = user_fix(host).unwrap_or_else(|| {
                "if this is a container, start it with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined`"
        .to_owned()
            });
            check.missing(failure.text(), fix)
        }
    }
}

/// Finds the kernel setting that forbids user namespaces, and the command that changes it.
fn user_fix(host: &Host) -> Option<String> {
    let persistent = |setting: &str| {
        format!(
            "echo '{setting}' | sudo tee /etc/sysctl.d/60-sandyard.conf && sudo sysctl --system"
        )
    };
    if host
        .sysctl("user.max_user_namespaces")
        .is_some_and(|most| most < 2)
    {
        return Some(persistent("user.max_user_namespaces=65536"));
    }
    if host.is_root() {
        return None;
    }
    if host.sysctl("kernel.unprivileged_userns_clone") == Some(0) {
        return Some(persistent("kernel.unprivileged_userns_clone=1"));
    }
    if host.sysctl("kernel.apparmor_restrict_unprivileged_userns") == Some(1) {
        return Some(persistent("kernel.apparmor_restrict_unprivileged_userns=0"));
    }
    None
}

/// Makes this process root of a new user namespace with a single mapped id, and creates the `namespaces` in it.
pub(super) fn enter_user(host: &Host, namespaces: UnshareFlags) -> Attempt {
    unshare(UnshareFlags::NEWUSER, "make a user namespace")?;
    map_self(host)?;
    unshare(namespaces, "make the namespace")
}

fn map_self(host: &Host) -> Attempt {
    // Without this an ordinary user may not map a group.
    std::fs::write("/proc/self/setgroups", "deny").step("write setgroups")?;
    std::fs::write("/proc/self/uid_map", format!("0 {} 1", host.uid)).step("write uid_map")?;
    std::fs::write("/proc/self/gid_map", format!("0 {} 1", host.gid)).step("write gid_map")
}

pub(super) fn unshare(flags: UnshareFlags, step: &str) -> Attempt {
    // SAFETY: called in forked children only, which have one thread and share nothing they rely on.
    unsafe { rustix::thread::unshare_unsafe(flags) }.step(step)
}

/// Runs `work` in a further child, the first one of a new pid namespace.
pub(super) fn as_first_process(work: impl FnOnce() -> Attempt) -> Attempt {
    // SAFETY: this process has one thread; the child runs `work` and leaves.
    let pid = unsafe { libc::fork() };
    if pid == -1 {
        return Err(last_errno()).step("fork");
    }
    if pid == 0 {
        die_with_parent();
        let code = work().map_or_else(|failure| failure.errno.raw_os_error().min(255), |()| 0);
        // SAFETY: ends the child.
        unsafe { libc::_exit(code) };
    }
    debug_assert!(Pid::from_raw(pid).is_some());
    let mut status = 0;
    // SAFETY: `status` is live; the pid is our own child's.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    checked(waited.into()).step("wait")?;
    match libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)) {
        Some(0) => Ok(()),
        Some(errno) => {
            Err(rustix::io::Errno::from_raw_os_error(errno)).step("in a new pid namespace")
        }
        None => Err(rustix::io::Errno::IO).step("in a new pid namespace"),
    }
}
