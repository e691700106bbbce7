//! Descriptors that came in with a process, and the program file behind it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::check::{Check, OnHost, Outcome};
use crate::context::Context;
use crate::finding::{
    Group::Files,
    Severity::{Critical, High},
};
use crate::search::{pids, search};
use crate::sys::{self, sys};

pub(super) const CHECKS: &[Check] = &[
    Check::new(Files, High, "files.inherited", inherited)
.title("A command inherits nothing but its own standard streams")
.attempts("list our descriptors at the start")
.expects("0, 1 and 2 only")
    .on_host(OnHost::Depends),
    Check::new(Files, Critical, "files.any-descriptor", any_descriptor)
.title("No process holds a directory of the host")
.attempts("read the planted files through every descriptor of every process in /proc, `..` included")
.expects("nothing found")
    .on_host(OnHost::Depends),
    Check::new(Files, Critical, "files.agent-program", agent_program)
.title("The program that the agent runs cannot be changed")
.attempts("ask for write access to /proc/1/exe, which is a file of the host")
.expects("refused")
    .on_host(OnHost::Depends),
    Check::new(Files, High, "files.agent-descriptors", agent_descriptors)
.title("The agent holds no file of the host")
.attempts("compare each file that process 1 has open with what is at that path here")
.expects("the same file")
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
/// since the file is busy only as long as something runs it, and root inside can make the agent run something else.
fn agent_program(_: &Context) -> Outcome {
    const PROGRAM: &str = "/proc/1/exe";
    match may_write(PROGRAM) {
        Ok(_) if is_sealed(PROGRAM) => Outcome::held("a sealed copy in memory"),
        Ok(_) => Outcome::breached("it may be written as soon as nothing runs it"),
        Err(errno) => Outcome::held(errno),
    }
}

/// Whether a file is one in memory that nobody can ever write again.
fn is_sealed(path: &str) -> bool {
    let Ok(fd) = sys::open(path, libc::O_RDONLY) else {
        return false;
    };
    let seals = sys!(libc::SYS_fcntl, fd, libc::F_GET_SEALS).unwrap_or(0);
    sys::close(fd);
    seals & i64::from(libc::F_SEAL_WRITE) != 0
}

/// Files that the agent holds and that have no place here. Sockets, pipes and devices are judged elsewhere.
fn agent_descriptors(_: &Context) -> Outcome {
    let links = match fs::read_dir("/proc/1/fd") {
        Ok(links) => links,
        Err(error) => return Outcome::held(format_args!("they cannot be listed: {error}")),
    };
    let mut seen = 0;
    let foreign: Vec<String> = links
        .flatten()
        .inspect(|_| seen += 1)
        .filter_map(|link| {
            let file = fs::metadata(link.path())
                .ok()
                .filter(|file| file.is_file() || file.is_dir())?;
            let target = fs::read_link(link.path())
                .ok()
                .filter(|target| target.is_absolute())?;
            let here = fs::metadata(&target).is_ok_and(|here| identity(&here) == identity(&file));
            let in_memory = target.starts_with("/memfd:");
            (!here && !in_memory).then(|| format!("`{}`", target.display()))
        })
        .collect();
    Outcome::breached_by(
        &foreign,
        format_args!("{seen} descriptors, none of a file that is not here"),
    )
}

fn identity(file: &fs::Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
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
    use super::{is_sealed, may_write};

    #[test]
    fn a_running_program_that_could_be_written_is_recognised_though_busy() {
        assert!(
            may_write("/proc/self/exe").is_ok(),
            "a test program is its owner's to write"
        );
        assert!(!is_sealed("/proc/self/exe"));
    }
}
