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
    Check::new(
        Files,
        High,
        "files.inherited",
        "A command inherits nothing but its own standard streams",
        inherited,
    )
    .doing("list our descriptors at the start", "0, 1 and 2 only")
    .on_host(OnHost::Depends),
    Check::new(
        Files,
        Critical,
        "files.any-descriptor",
        "No process holds a directory of the host",
        any_descriptor,
    )
    .doing(
        "read the planted files through every descriptor of every process in /proc, `..` included",
        "nothing found",
    )
    .on_host(OnHost::Depends),
    Check::new(
        Files,
        Critical,
        "files.agent-program",
        "The program that the agent runs cannot be changed",
        agent_program,
    )
    .doing(
        "ask for write access to /proc/1/exe, which is a file of the host",
        "refused",
    )
    .on_host(OnHost::Depends),
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
    match may_write("/proc/1/exe") {
        Ok(_) => Outcome::breached("it may be written as soon as nothing runs it"),
        Err(errno) => Outcome::held(errno),
    }
}

fn may_write(path: &str) -> sys::Result {
    let path = sys::c_str(path);
    sys!(
        libc::SYS_faccessat,
        libc::AT_FDCWD,
        path.as_c_str(),
        libc::W_OK
    )
}

#[cfg(test)]
mod tests {
    use super::may_write;

    #[test]
    fn a_running_program_that_could_be_written_is_recognised_though_busy() {
        assert!(
            may_write("/proc/self/exe").is_ok(),
            "a test program is its owner's to write"
        );
    }
}
