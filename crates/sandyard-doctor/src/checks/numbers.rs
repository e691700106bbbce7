//! Numbers that bound how many sandboxes fit.

use rustix::process::{Resource, getrlimit};

use crate::host::Host;
use crate::report::{Check, Need};

/// A kernel setting, what it bounds and what is enough for a thousand sandboxes.
struct Setting {
    name: &'static str,
    gives: &'static str,
    key: &'static str,
    enough: u64,
}

const SETTINGS: [Setting; 8] = [
    Setting {
        name: "inotify-instances",
        gives: "file watchers inside: editors, dev servers; all sandboxes share the number",
        key: "fs.inotify.max_user_instances",
        enough: 1024,
    },
    Setting {
        name: "inotify-watches",
        gives: "watched files and directories of all sandboxes together",
        key: "fs.inotify.max_user_watches",
        enough: 65_536,
    },
    Setting {
        name: "process-ids",
        gives: "processes and threads on the whole host",
        key: "kernel.pid_max",
        enough: 131_072,
    },
    Setting {
        name: "threads",
        gives: "threads on the whole host",
        key: "kernel.threads-max",
        enough: 65_536,
    },
    Setting {
        name: "keys",
        gives: "key rings, one for each session of one user",
        key: "kernel.keys.maxkeys",
        enough: 200,
    },
    Setting {
        name: "user-namespace-count",
        gives: "sandboxes at once: each has one",
        key: "user.max_user_namespaces",
        enough: 1024,
    },
    Setting {
        name: "network-namespace-count",
        gives: "sandboxes at once: each has one",
        key: "user.max_net_namespaces",
        enough: 1024,
    },
    Setting {
        name: "open-files-host",
        gives: "open files on the whole host",
        key: "fs.file-max",
        enough: 200_000,
    },
];

pub(super) fn checks(host: &Host) -> Vec<Check> {
    let mut checks: Vec<Check> = SETTINGS.iter().map(|setting| one(host, setting)).collect();
    checks.push(open_files());
    checks
}

fn one(host: &Host, setting: &Setting) -> Check {
    let check = Check::ok(setting.name, setting.gives, Need::Optional, "");
    let (key, enough) = (setting.key, setting.enough);
    match host.sysctl(key) {
        Some(now) if now < enough => check.partial(
            format!("{key} is {now}; {enough} is enough for 1000 sandboxes"),
            format!("echo '{key}={enough}' | sudo tee /etc/sysctl.d/61-sandyard-{}.conf && sudo sysctl --system", setting.name),
        ),
        Some(now) => Check { detail: format!("{key} is {now}"), ..check },
        // An older kernel, or one built without it: then nothing bounds it.
        None => Check { detail: format!("{key} does not exist here"), ..check },
    }
}

fn open_files() -> Check {
    const ENOUGH: u64 = 65_536;
    let check = Check::ok(
        "open-files",
        "connections and files of one process, inside and of the server",
        Need::Optional,
        "",
    );
    match getrlimit(Resource::Nofile).maximum {
        Some(most) if most < ENOUGH => check.partial(
            format!("the hard limit is {most}"),
            "echo '* hard nofile 1048576' | sudo tee /etc/security/limits.d/sandyard.conf # then log in again",
        ),
        Some(most) => Check { detail: format!("the hard limit is {most}"), ..check },
        None => Check { detail: "no hard limit".to_owned(), ..check },
    }
}
