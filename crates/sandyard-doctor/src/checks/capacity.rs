//! Kernel limits that bound how many sandboxes fit, compared with what sandboxes may use together.

use rustix::process::{Resource, getrlimit};
use sandyard_confine::caps;
use sandyard_confine::host::HostResources;
use sandyard_core::Limits;
use sandyard_core::size::Size;

use crate::host::Host;
use crate::report::{Check, Need};

/// Memory that the kernel needs for an open file, at the least.
const BYTES_PER_FILE: u64 = 400;
/// What every sandbox may use: see `init` of the engine.
const TERMINALS: u64 = 32;
const INOTIFY_ALONE: u64 = 128;
const INOTIFY_TOGETHER: u64 = 32;
const INOTIFY_WATCHES: u64 = 65_536;
/// Number of `CAP_SYS_RESOURCE`.
const SYS_RESOURCE: u32 = 24;

/// How many sandboxes with default limits fill the memory of this host.
struct Scale {
    sandboxes: u64,
    host: HostResources,
    limits: Limits,
    /// Root gives every sandbox user ids of its own, and the kernel counts by user; otherwise all sandboxes count as one user.
    is_root: bool,
}

impl Scale {
    fn of(host: &Host) -> Self {
        let resources = HostResources::read(&host.data_dir);
        let limits = Limits::default().least_of(&resources.max_limits());
        Self {
            sandboxes: (resources.memory_bytes / limits.memory_bytes).max(1),
            host: resources,
            limits,
            is_root: host.is_root(),
        }
    }

    /// What all sandboxes use where the kernel counts them together, and one where it counts it for itself.
    fn needed(&self, alone: u64, together: u64) -> u64 {
        match self.is_root {
            true => alone,
            false => self.sandboxes * together,
        }
    }
}

/// A kernel setting, what it bounds and the value that is enough.
struct Setting {
    name: &'static str,
    purpose: &'static str,
    key: &'static str,
    sufficient: fn(&Scale) -> u64,
}

const SETTINGS: [Setting; 9] = [
    Setting {
        name: "inotify-instances",
        purpose: "file watchers in sandboxes: editors, development servers",
        key: "fs.inotify.max_user_instances",
        sufficient: |scale| scale.needed(INOTIFY_ALONE, INOTIFY_TOGETHER),
    },
    Setting {
        name: "inotify-watches",
        purpose: "watched files and directories in sandboxes",
        key: "fs.inotify.max_user_watches",
        sufficient: |scale| scale.needed(INOTIFY_WATCHES, INOTIFY_WATCHES),
    },
    Setting {
        name: "process-ids",
        purpose: "process ids on the whole host",
        key: "kernel.pid_max",
        sufficient: |scale| scale.sandboxes * u64::from(scale.limits.pids),
    },
    Setting {
        name: "threads",
        purpose: "threads on the whole host",
        key: "kernel.threads-max",
        sufficient: |scale| scale.sandboxes * u64::from(scale.limits.pids),
    },
    Setting {
        name: "keys",
        purpose: "kernel key rings of one user: one for each session",
        key: "kernel.keys.maxkeys",
        sufficient: |_| 200,
    },
    Setting {
        name: "user-namespace-count",
        purpose: "number of sandboxes: each has one",
        key: "user.max_user_namespaces",
        sufficient: |scale| scale.needed(1, 1),
    },
    Setting {
        name: "network-namespace-count",
        purpose: "number of sandboxes: each has one",
        key: "user.max_net_namespaces",
        sufficient: |scale| scale.needed(1, 1),
    },
    Setting {
        name: "open-files-host",
        purpose: "open files on the whole host",
        key: "fs.file-max",
        sufficient: |scale| scale.host.memory_bytes / BYTES_PER_FILE,
    },
    Setting {
        name: "terminals",
        purpose: "terminals on the whole host",
        key: "kernel.pty.max",
        sufficient: |scale| scale.sandboxes * TERMINALS,
    },
];

pub(super) fn checks(host: &Host) -> Vec<Check> {
    let scale = Scale::of(host);
    let mut checks = vec![limits(&scale)];
    checks.extend(
        SETTINGS
            .iter()
            .map(|setting| check_setting(host, setting, &scale)),
    );
    checks.push(open_files());
    checks.push(out_of_memory());
    checks
}

/// Compares default and maximum limits with the host.
fn limits(scale: &Scale) -> Check {
    let maximum = scale.host.max_limits();
    let size = |bytes| Size(bytes).readable();
    let detail = format!(
        "{} sandboxes with {} of memory each fill this host; one sandbox may use up to {}, {} cores, {} processes and {} of disk",
        scale.sandboxes,
        size(scale.limits.memory_bytes),
        size(maximum.memory_bytes),
        f64::from(maximum.cpu_millis) / 1000.0,
        maximum.pids,
        size(maximum.disk_bytes),
    );
    let check = Check::ok("limits", Need::Optional)
        .purpose("how many sandboxes with default limits this host holds")
        .detail(detail.clone());
    match scale.limits == Limits::default() {
        true => check,
        false => check.partial(
            format!("{detail}; the default limits are lowered to fit this host"),
            "sandyard config show # to allow more than the host has, set `limits.max_memory` and the other maxima",
        ),
    }
}

fn check_setting(host: &Host, setting: &Setting, scale: &Scale) -> Check {
    let check = Check::ok(setting.name, Need::Optional).purpose(setting.purpose);
    let (key, sufficient) = (setting.key, (setting.sufficient)(scale));
    let sandboxes = scale.sandboxes;
    match host.sysctl(key) {
        Some(now) if now < sufficient => check.partial(
            format!("{key} is {now}; {sandboxes} sandboxes, which fill this host's memory, need {sufficient}"),
            format!("echo '{key}={sufficient}' | sudo tee /etc/sysctl.d/61-sandyard-{}.conf && sudo sysctl --system", setting.name),
        ),
        Some(now) => Check { detail: format!("{key} is {now}; {sufficient} is enough"), ..check },
        // An older kernel, or one built without the feature: nothing bounds it.
        None => Check { detail: format!("this kernel has no {key}"), ..check },
    }
}

fn open_files() -> Check {
    const SUFFICIENT: u64 = 65_536;
    let check = Check::ok("open-files", Need::Optional)
        .purpose("open files and connections of one process, of the server and in sandboxes");
    match getrlimit(Resource::Nofile).maximum {
        Some(maximum) if maximum < SUFFICIENT => check.partial(
            format!("the hard limit is {maximum}"),
            "echo '* hard nofile 1048576' | sudo tee /etc/security/limits.d/sandyard.conf # then log in again",
        ),
        Some(maximum) => Check { detail: format!("the hard limit is {maximum}"), ..check },
        None => Check { detail: "there is no hard limit".to_owned(), ..check },
    }
}

/// Checks whether the kernel can be made to end the server and the launcher last.
fn out_of_memory() -> Check {
    let check = Check::ok("out-of-memory", Need::Optional)
        .purpose("when the host is out of memory, sandboxes end before the server and the launcher")
        .detail("OOM scores can be set, and sandboxes cannot lower theirs");
    match caps::current() {
        Ok(sets) if sets.effective & (1 << SYS_RESOURCE) != 0 => check,
        _ => check.partial(
            "CAP_SYS_RESOURCE is missing: sandboxes can lower their OOM score to that of the launcher",
            "run Sandyard as root with CAP_SYS_RESOURCE, as deploy/sandyard.service does",
        ),
    }
}
