//! Planted files of the host, by every kind of path.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use crate::check::{Check, OnHost, Outcome};
use crate::context::Context;
use crate::finding::{Group::Files, Severity::Critical};
use crate::scratch::Scratch;
use crate::search::{self, contains, search};
use crate::sys::{self, sys};

const NOT_FOUND: &str = "no such file here, or no permission";

pub(super) const CHECKS: &[Check] = &[
    Check::new(Files, Critical, "files.by-path", by_path)
.title("Files of the host are not there")
.attempts("read each planted file by its path on the host")
.expects(NOT_FOUND)
    .on_host(OnHost::Breaches),
    Check::new(Files, Critical, "files.dot-dot", dot_dot)
.title("`..` does not climb out of the root")
.attempts("read the planted files through `/..`, from several directories")
.expects(NOT_FOUND)
    .on_host(OnHost::Breaches),
    Check::new(Files, Critical, "files.init-root", init_root)
.title("The agent's root is the sandbox's")
.attempts("read the planted files through /proc/1/root and /proc/1/cwd")
.expects(NOT_FOUND)
    .on_host(OnHost::Depends),
    Check::new(Files, Critical, "files.any-root", any_root)
.title("No process has the host's root")
.attempts("read the planted files through the root and cwd of every process and thread in /proc")
.expects(NOT_FOUND)
    .on_host(OnHost::Breaches),
    Check::new(Files, Critical, "files.symlink", symbolic_link)
.title("Symbolic links lead nowhere outside")
.attempts("follow absolute, relative and /proc links of our own making to the planted files")
.expects(NOT_FOUND)
    .on_host(OnHost::Breaches),
    Check::new(Files, Critical, "files.chroot", double_chroot)
.title("A double chroot ends in the sandbox's root")
.attempts("keep a descriptor of /, chroot below it, climb out with `..`, chroot to where that ends")
.expects(NOT_FOUND)
    .on_host(OnHost::BreachesForRoot),
    Check::new(Files, Critical, "files.neighbour", neighbour)
.title("Files of another sandbox are not there")
.attempts("read a file that another sandbox wrote, by its path there")
.expects(NOT_FOUND)
    .on_host(OnHost::Breaches),
];

fn by_path(context: &Context) -> Outcome {
    search(context, [PathBuf::from("/")])
}

fn dot_dot(context: &Context) -> Outcome {
    let up = "../".repeat(40);
    search(
        context,
        ["/", "/proc/self/cwd/", "/proc/", "/dev/", "/usr/", "/tmp/"]
            .map(|base| PathBuf::from(format!("{base}{up}"))),
    )
}

fn init_root(context: &Context) -> Outcome {
    let up = "../".repeat(40);
    search(
        context,
        [
            "/proc/1/root".into(),
            format!("/proc/1/root/{up}"),
            "/proc/1/cwd".into(),
            format!("/proc/1/cwd/{up}"),
        ]
        .map(PathBuf::from),
    )
}

fn any_root(context: &Context) -> Outcome {
    let up = "../".repeat(40);
    let tasks = search::pids().into_iter().flat_map(|pid| {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .flatten();
        threads
            .map(|thread| thread.path())
            .chain([PathBuf::from(format!("/proc/{pid}"))])
    });
    search(
        context,
        tasks.flat_map(|task| [task.join("root"), task.join("cwd").join(&up)]),
    )
}

fn symbolic_link(context: &Context) -> Outcome {
    let scratch = match Scratch::make() {
        Ok(scratch) => scratch,
        Err(error) => return Outcome::inconclusive(format_args!("no place for a link: {error}")),
    };
    let targets = [
        "/".to_owned(),
        "../".repeat(40),
        "/proc/self/root".into(),
        "/proc/1/root".into(),
        "/proc/self/cwd/../../..".into(),
    ];
    let links: Vec<PathBuf> = targets
        .iter()
        .enumerate()
        .filter_map(|(number, target)| {
            let link = scratch.path().join(number.to_string());
            symlink(target, &link).ok().map(|()| link)
        })
        .collect();
    search(context, links)
}

fn double_chroot(context: &Context) -> Outcome {
    let Ok(scratch) = Scratch::make() else {
        return Outcome::inconclusive("no place for a root");
    };
    let Ok(root) = sys::open("/", libc::O_DIRECTORY) else {
        return Outcome::inconclusive("cannot open /");
    };
    let below = sys::c_path(scratch.path());
    if let Err(errno) = sys!(libc::SYS_chroot, below.as_c_str()) {
        return Outcome::held(format_args!("chroot: {errno}"));
    }
    let climbed = sys!(libc::SYS_fchdir, root).and_then(|_| {
        for _ in 0..64 {
            sys!(libc::SYS_chdir, c"..")?;
        }
        sys!(libc::SYS_chroot, c".")
    });
    match climbed {
        Ok(_) => search(context, [PathBuf::from("/")]),
        Err(errno) => Outcome::inconclusive(format_args!("climbing out: {errno}")),
    }
}

fn neighbour(context: &Context) -> Outcome {
    let Some(file) = context
        .plan
        .neighbour
        .as_ref()
        .and_then(|neighbour| neighbour.file.as_ref())
    else {
        return Outcome::inconclusive("no neighbour with a file");
    };
    match search::read_start(&file.path) {
        Ok(bytes) if contains(&bytes, &file.marker) => {
            Outcome::breached("read the neighbour's file")
        }
        Ok(_) => Outcome::held("another file of that name"),
        Err(errno) => Outcome::held(errno),
    }
}
