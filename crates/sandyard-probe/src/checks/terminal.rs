//! The terminal: typing into it from inside must not reach the person outside.

use crate::check::{Check, Outcome};
use crate::context::Context;
use crate::finding::{Group::Kernel, Severity::High};
use crate::sys::{self, sys};

pub(super) const CHECKS: &[Check] = &[
    Check::new(Kernel, High, "terminal.inject", inject)
        .title("Nothing can be typed into a terminal of the host")
        .attempts("TIOCSTI and TIOCLINUX on standard streams, /dev/tty and /dev/console")
        .expects("no terminal, or refused"),
    Check::new(Kernel, High, "terminal.consoles", consoles)
        .title("The host's consoles are not there")
        .attempts("open tty0 to tty12, ttyS0, hvc0, console and vcs")
        .expects("not there"),
];

const TIOCLINUX: i64 = 0x541c;

fn inject(_: &Context) -> Outcome {
    let descriptors = [0, 1, 2].into_iter().chain(
        ["/dev/tty", "/dev/console"]
            .iter()
            .filter_map(|path| sys::open(path, libc::O_RDWR).ok()),
    );
    let mut worked = Vec::new();
    let mut answers = Vec::new();
    for fd in descriptors {
        for (name, request, byte) in [
            ("TIOCSTI", libc::TIOCSTI as i64, b'\0'),
            ("TIOCLINUX", TIOCLINUX, 10),
        ] {
            match sys!(libc::SYS_ioctl, fd, request, &[byte; 8][..]) {
                // A pseudo-terminal of our own devpts is the sandbox's: what is typed there is read there.
                Ok(_) if is_own_terminal(fd) => answers.push("only our own terminal".to_owned()),
                Ok(_) => worked.push(format!("{name} on descriptor {fd}")),
                Err(errno) => answers.push(errno.to_string()),
            }
        }
    }
    answers.sort();
    answers.dedup();
    Outcome::breached_by(&worked, answers.join(", "))
}

fn is_own_terminal(fd: i32) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |path: String| std::fs::metadata(path).ok().map(|file| file.dev());
    let terminal = place(format!("/proc/self/fd/{fd}"));
    terminal.is_some() && terminal == place("/dev/pts".to_owned())
}

fn consoles(_: &Context) -> Outcome {
    let names = (0..=12)
        .map(|number| format!("tty{number}"))
        .chain(["ttyS0", "hvc0", "vcs", "vcsa", "console"].map(str::to_owned));
    let opened: Vec<String> = names
        .map(|name| format!("/dev/{name}"))
        .filter(|path| sys::open(path, libc::O_RDWR).is_ok_and(|fd| !is_own_terminal(fd)))
        .map(|path| format!("opened `{path}`"))
        .collect();
    Outcome::breached_by(&opened, "none there")
}
