//! Descriptors that came in with a process, and the program file behind it.

use std::fs;
use std::path::PathBuf;

use crate::check::{Check, OnHost, Outcome};
use crate::context::Context;
use crate::finding::{
    Group::Files,
    Severity::{Critical, High},
};
use crate::look::{pids, search};
use crate::sys::{self, sys};

pub(super) const CHECKS: &[Check] = &[
    Check::new(Files, High, "files.inherited", "A command inherits nothing but its own standard streams", inherited)
        .doing("list our descriptors at the start", "0, 1 and 2 only")
        .on_host(OnHost::Depends),
    Check::new(Files, Critical, "files.any-descriptor", "No process holds a directory of the host", any_descriptor)
        .doing("read the planted files through every descriptor of every process in /proc, `..` included", "nothing found")
        .on_host(OnHost::Depends),
    Check::new(Files, Critical, "files.agent-program", "The program that the agent runs cannot be changed", agent_program)
        .doing("ask for write access to /proc/1/exe, which is a file of the host, and to that of every process", "refused")
        .on_host(OnHost::Breaches),
];

fn inherited(context: &Context) -> Outcome {
    let extra: Vec<String> = context
        .descriptors
        .iter()
        .filter(|(fd, _)| *fd > 2)
        .map(|(fd, target)| format!("{fd} is `{target}`"))
        .collect();
    Outcome::breached_by(&extra, "0, 1 and 2 only")
}

fn any_descriptor(context: &Context) -> Outcome {
    let up = "../".repeat(40);
    let roots = pids().into_iter().flat_map(|pid| {
        let links = fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten()
            .flatten();
        links.map(|link| link.path())
    });
    search(
        context,
        roots.flat_map(|root: PathBuf| [root.join(&up), root]),
    )
}

/// Access is asked for, nothing is written. `ETXTBSY` would tell nothing: the permission is what must be missing,
/// since the file is busy only as long as something runs it.
fn agent_program(_: &Context) -> Outcome {
    let mut last = None;
    for pid in [1].into_iter().chain(pids()) {
        let path = format!("/proc/{pid}/exe");
        // Programs of the sandbox's own making are its own to write. Pid 1 is never one of them.
        if pid != 1 && !same_file(&path, "/proc/1/exe") {
            continue;
        }
        match sys!(
            libc::SYS_faccessat,
            libc::AT_FDCWD,
            sys::c_str(&path).as_c_str(),
            libc::W_OK
        ) {
            Ok(_) => return Outcome::breached(format_args!("`{path}` may be written")),
            Err(errno) => last = Some(errno),
        }
    }
    last.map_or_else(
        || Outcome::inconclusive("no process in /proc"),
        Outcome::held,
    )
}

fn same_file(one: &str, other: &str) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &str| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    identity(one).is_some() && identity(one) == identity(other)
}
