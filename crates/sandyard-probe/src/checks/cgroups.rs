//! Control groups: the limits must be out of reach of what they limit.

use std::path::{Path, PathBuf};

use super::knobs::{files_below, writable_among};
use crate::check::{Check, OnHost, Outcome};
use crate::context::Context;
use crate::finding::{
    Group::Knobs,
    Severity::{Critical, High, Low},
};
use crate::scratch::Scratch;
use crate::search::read_start;
use crate::sys::{self, sys};
use sandyard_confine::mountinfo::mounts;

pub(super) const CHECKS: &[Check] = &[
    Check::new(Knobs, High, "cgroups.writable", writable)
.title("No cgroup file is writable")
.attempts("open every file of every mounted cgroup hierarchy for writing")
.expects("nothing there, read-only or refused"),
    Check::new(Knobs, Critical, "cgroups.release-agent", release_agent)
.title("No release agent can be set")
.attempts("mount cgroup v1 hierarchies anew and open release_agent for writing; look for one already mounted")
.expects("refused"),
    Check::new(Knobs, High, "cgroups.subgroup", subgroup)
.title("No new cgroup can be made")
.attempts("make a directory in every mounted cgroup hierarchy")
.expects("refused"),
    Check::new(Knobs, Low, "cgroups.names", names)
.title("The host's cgroup names are not visible")
.attempts("read /proc/self/cgroup")
.expects("every path is /")
        .on_host(OnHost::Depends),
];

fn hierarchies() -> Vec<PathBuf> {
    let mounted = mounts()
        .into_iter()
        .filter(|mount| mount.kind.starts_with("cgroup"))
        .map(|mount| mount.point);
    mounted.chain([PathBuf::from("/sys/fs/cgroup")]).collect()
}

fn writable(_: &Context) -> Outcome {
    writable_among(hierarchies().iter().flat_map(|root| files_below(root)))
}

fn release_agent(_: &Context) -> Outcome {
    let mounted = hierarchies()
        .into_iter()
        .flat_map(|root| files_below(&root));
    let found = writable_among(mounted.filter(|file| file.ends_with("release_agent")));
    if found.verdict == crate::finding::Verdict::Breached {
        return found;
    }
    let Ok(scratch) = Scratch::make() else {
        return Outcome::inconclusive("no directory to mount on");
    };
    let target = sys::c_path(scratch.path());
    let mut answers = Vec::new();
    for controller in [
        c"memory",
        c"rdma",
        c"pids",
        c"misc",
        c"none,name=sandyard-probe",
    ] {
        let result = sys!(
            libc::SYS_mount,
            c"probe",
            target.as_c_str(),
            c"cgroup",
            0,
            controller
        );
        match result {
            Ok(_) => {
                let agent = writable_among([scratch.path().join("release_agent")]);
                let _ = sys!(libc::SYS_umount2, target.as_c_str(), libc::MNT_DETACH);
                return Outcome::breached(format_args!(
                    "mounted cgroup v1; release_agent: {}",
                    agent.observed
                ));
            }
            Err(errno) => answers.push(errno.to_string()),
        }
    }
    answers.dedup();
    Outcome::held(format_args!("mount: {}", answers.join(", ")))
}

fn subgroup(_: &Context) -> Outcome {
    let made: Vec<String> = hierarchies()
        .iter()
        .map(|root| root.join("sandyard-probe"))
        .filter(|path| {
            std::fs::create_dir(path)
                .map(|()| std::fs::remove_dir(path))
                .is_ok()
                && is_cgroup(path)
        })
        .map(|path| format!("made `{}`", path.display()))
        .collect();
    Outcome::breached_by(&made, "none could be made")
}

/// An empty tmpfs at /sys/fs/cgroup is no hierarchy.
fn is_cgroup(path: &Path) -> bool {
    path.parent()
        .is_some_and(|parent| parent.join("cgroup.procs").exists())
}

fn names(_: &Context) -> Outcome {
    let table = read_start("/proc/self/cgroup").unwrap_or_default();
    let table = String::from_utf8_lossy(&table).into_owned();
    let outer: Vec<String> = table
        .lines()
        .filter(|line| !line.ends_with(":/"))
        .map(str::to_owned)
        .collect();
    Outcome::breached_by(&outer, "every path is /")
}
