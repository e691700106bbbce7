//! Control groups: layout, each limit, freeze and kill; tried with a real group and a real process.

use std::time::Duration;

use sandyard_confine::cgroup::{Cgroup, CgroupError, Hierarchy, ParentLocation, Settings, Support};
use sandyard_core::Limits;

use crate::host::{Host, read, unique};
use crate::report::{Check, Need};

/// Lets ordinary users use systemd's cgroup controllers.
const DELEGATE: &str = "sudo mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n' | sudo tee /etc/systemd/system/user@.service.d/delegate.conf && sudo systemctl daemon-reload # then log in again and start Sandyard by: systemd-run --user --scope -p Delegate=yes";
const BOOT: &str = "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&systemd.unified_cgroup_hierarchy=1 cgroup_enable=memory swapaccount=1 /' /etc/default/grub && sudo update-grub && sudo reboot";
const CONTAINER: &str = "start the outer container with `--privileged --cgroupns=private`";
const BY_HAND: &str = "sudo mkdir /sys/fs/cgroup/$USER && sudo chown $USER /sys/fs/cgroup/$USER /sys/fs/cgroup/$USER/cgroup.* && echo $$ | sudo tee /sys/fs/cgroup/$USER/cgroup.procs # then start Sandyard from this shell";

pub(super) fn checks(host: &Host) -> Vec<Check> {
    let settings = Settings {
        prefix: unique("try"),
        location: ParentLocation::Highest,
    };
    let hierarchy = Hierarchy::detect_with(&settings);
    let tried = try_group(&hierarchy);
    // The parent group is empty by now, whatever happened.
    let _ = hierarchy.remove_parent_if_empty();
    let support = hierarchy.support();
    let mut checks = vec![layout(host, support, tried.err().as_deref())];
    checks.extend(jobs(host, support));
    checks.extend(quick_moves(support));
    checks
}

/// Makes a group, puts a process in, freezes and kills it.
fn try_group(hierarchy: &Hierarchy) -> Result<(), String> {
    let describe = |error: CgroupError| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        format!("{error}{}", cause.unwrap_or_default())
    };
    let group = hierarchy
        .create("try", &Limits::default())
        .map_err(describe)?;
    let used = use_group(&group, hierarchy.support());
    group.remove().and(used).map_err(describe)
}

fn use_group(group: &Cgroup, support: &Support) -> Result<(), CgroupError> {
    let Some(child) = Sleeper::start() else {
        return Ok(());
    };
    group.add(child.0)?;
    if support.freeze {
        group.freeze()?;
        group.thaw()?;
    }
    if support.kill {
        group.kill()?;
        group.wait_empty(Duration::from_secs(30))?;
    }
    // Dead and reaped before the group is removed.
    drop(child);
    Ok(())
}

/// A child that waits, killed on drop.
struct Sleeper(libc::pid_t);

impl Sleeper {
    fn start() -> Option<Self> {
        // SAFETY: the child makes two system calls over and over; both are async-signal-safe.
        match unsafe { libc::fork() } {
            -1 => None,
            0 => {
                crate::attempt::die_with_parent();
                loop {
                    // SAFETY: takes nothing.
                    unsafe { libc::pause() };
                }
            }
            pid => Some(Self(pid)),
        }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        // SAFETY: the pid is our own child's, not yet reaped; no status wanted.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), 0);
        }
    }
}

fn fix(host: &Host) -> &'static str {
    match (
        host.is_root(),
        std::path::Path::new("/run/systemd/system").exists(),
    ) {
        (false, true) => DELEGATE,
        (false, false) => BY_HAND,
        (true, true) => BOOT,
        (true, false) => CONTAINER,
    }
}

fn layout(host: &Host, support: &Support, problem: Option<&str>) -> Check {
    let check = Check::ok("cgroups", Need::Recommended)
        .purpose("resource limits, pause, and ending all processes of a sandbox")
        .detail(&support.how);
    let none = !(support.memory || support.cpu || support.pids || support.freeze);
    match problem {
        _ if none => check.missing(&support.how, fix(host)),
        Some(problem) => check.missing(problem, fix(host)),
        None => check,
    }
}

fn jobs(host: &Host, support: &Support) -> Vec<Check> {
    [
        (
            "cgroup-memory",
            "memory limit: a sandbox that uses too much memory does not harm others",
            support.memory,
        ),
        (
            "cgroup-cpu",
            "CPU limit: a busy sandbox leaves processor time to others",
            support.cpu,
        ),
        (
            "cgroup-pids",
            "process limit: a fork bomb cannot fill the host",
            support.pids,
        ),
        (
            "cgroup-freeze",
            "sandboxes can be paused and resumed with their memory",
            support.freeze,
        ),
        (
            "cgroup-kill",
            "deleting a sandbox ends all of its processes at once",
            support.kill,
        ),
    ]
    .into_iter()
    .map(|(name, purpose, has)| {
        let check = Check::ok(name, Need::Recommended).purpose(purpose);
        match has {
            true => check,
            false => check.missing("this process cannot use it", fix(host)),
        }
    })
    .collect()
}

/// On v1, moving a process into a group waits for all processors, about ten milliseconds, unless this option is on.
fn quick_moves(support: &Support) -> Option<Check> {
    if !support.how.contains(": v1 ") {
        return None;
    }
    let check = Check::ok("cgroup-quick-moves", Need::Optional)
        .purpose("creating a sandbox takes about 10 ms less on cgroup v1")
        .detail("the mount option favordynmods is on");
    let mounts = read("/proc/self/mounts");
    let unified = mounts
        .lines()
        .find(|line| line.split(' ').nth(2) == Some("cgroup2"))?;
    if unified.contains("favordynmods") {
        return Some(check);
    }
    let point = unified.split(' ').nth(1)?;
    let fix = format!("sudo mount -o remount,favordynmods {point}");
    Some(check.missing("the mount option favordynmods is off", fix))
}
