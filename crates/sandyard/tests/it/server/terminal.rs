//! `sandyard exec -it`, with a terminal of our own around it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use super::Server;

/// A terminal: what a person would sit at, and what a program sees of it.
struct Terminal {
    person: File,
    program: OwnedFd,
    seen: String,
}

impl Terminal {
    fn open(cols: u16, rows: u16) -> Self {
        let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .expect("a terminal");
        grantpt(&person).expect("grant");
        unlockpt(&person).expect("unlock");
        let name = ptsname(&person, Vec::new()).expect("a name");
        let path = name.into_string().expect("UTF-8");
        let program = File::options()
            .read(true)
            .write(true)
            .open(path)
            .expect("open it");
        let terminal = Self {
            person: File::from(person),
            program: program.into(),
            seen: String::new(),
        };
        terminal.resize(cols, rows);
        terminal
    }

    fn resize(&self, cols: u16, rows: u16) {
        let size = Winsize {
            ws_row: rows,
            ws_col: cols,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&self.person, size).expect("resize");
    }

    fn stdio(&self) -> Stdio {
        self.program.try_clone().expect("another").into()
    }

    /// Reads until a text has appeared, and forgets all up to there.
    fn wait_for(&mut self, text: &str) {
        loop {
            if let Some(at) = self.seen.find(text) {
                self.seen.drain(..at + text.len());
                return;
            }
            let limit = Timespec {
                tv_sec: 120,
                tv_nsec: 0,
            };
            let ready = poll(
                &mut [PollFd::new(&self.person, PollFlags::IN)],
                Some(&limit),
            );
            assert_eq!(ready, Ok(1), "`{text}` never came: {:?}", self.seen);
            let mut buffer = [0; 4096];
            let read = self.person.read(&mut buffer).expect("read");
            let new = String::from_utf8_lossy(&buffer[..read]).into_owned();
            self.seen.push_str(&new);
        }
    }
}

#[test]
fn keys_size_and_exit_code_pass_through_and_the_terminal_is_restored() {
    let server = Server::start();
    let id = server.out(&["create"]);
    let mut terminal = Terminal::open(100, 30);
    let before = tcgetattr(terminal.program.as_fd()).expect("modes");
    let script = "stty size; read -r typed; echo typed-$typed; \
        trap 'stty size; exit 5' WINCH; echo ready; while :; do sleep 0.05; done";
    let exec = server.command(&["exec", "-it", &id, "--", "bash", "-c", script]);
    // The program must be in the foreground of its terminal, as under a shell.
    let mut command = Command::new("setsid");
    command
        .args(["--ctty", "--wait"])
        .arg(exec.get_program())
        .args(exec.get_args());
    command.env_clear().envs(
        exec.get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let mut child = command
        .stdin(terminal.stdio())
        .stdout(terminal.stdio())
        .stderr(terminal.stdio())
        .spawn()
        .expect("start");
    terminal.wait_for("30 100");
    terminal.person.write_all(b"words\r").expect("type");
    terminal.wait_for("typed-words");
    terminal.wait_for("ready");
    terminal.resize(120, 40);
    terminal.wait_for("40 120");
    assert_eq!(child.wait().expect("wait").code(), Some(5));
    let after = tcgetattr(terminal.program.as_fd()).expect("modes");
    assert_eq!(format!("{before:?}"), format!("{after:?}"));
}
