//! `sandyard exec -it`, with a terminal of our own around it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use super::Server;

/// A terminal: what a person would sit at, and what a program sees of it.
pub(super) struct Terminal {
    person: File,
    program: OwnedFd,
    seen: String,
}

impl Terminal {
    pub(super) fn open(cols: u16, rows: u16) -> Self {
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

    /// Reads until a text has appeared, and forgets all up to there. Returns what came before the text.
    pub(super) fn wait_for(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.seen.find(text) {
                let before = self.seen[..at].to_owned();
                self.seen.drain(..at + text.len());
                return before;
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

    pub(super) fn write(&mut self, keys: &str) {
        self.person.write_all(keys.as_bytes()).expect("type");
    }

    /// Starts a program in the foreground of the terminal, as a shell does. With a text, that is printed at its end.
    pub(super) fn start(&self, program: &Command, then: Option<&str>) -> Child {
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]);
        if let Some(then) = then {
            let script = format!("\"$@\"; echo {then}");
            command.args(["sh", "-c", &script, "sh"]);
        }
        command.arg(program.get_program()).args(program.get_args());
        let variables = program.get_envs();
        let variables = variables.filter_map(|(name, value)| Some((name, value?)));
        command.env_clear().envs(variables).env("TERM", "xterm");
        command
            .stdin(self.stdio())
            .stdout(self.stdio())
            .stderr(self.stdio())
            .spawn()
            .expect("start")
    }
}

/// What a program prints on a terminal, without colours.
pub(super) fn screen(cols: u16, program: &Command) -> String {
    let mut terminal = Terminal::open(cols, 30);
    let mut child = terminal.start(program, Some("the-end"));
    let text = terminal.wait_for("the-end");
    child.wait().expect("wait");
    let mut plain = String::new();
    for (index, part) in text.split("\x1b[").enumerate() {
        let code_end = part.find(|c: char| c.is_ascii_alphabetic());
        plain.push_str(match (index, code_end) {
            (0, _) => part,
            (_, Some(end)) => &part[end + 1..],
            (_, None) => "",
        });
    }
    plain.replace('\r', "")
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
    let mut child = terminal.start(&exec, None);
    terminal.wait_for("30 100");
    terminal.write("words\r");
    terminal.wait_for("typed-words");
    terminal.wait_for("ready");
    terminal.resize(120, 40);
    terminal.wait_for("40 120");
    assert_eq!(child.wait().expect("wait").code(), Some(5));
    let after = tcgetattr(terminal.program.as_fd()).expect("modes");
    assert_eq!(format!("{before:?}"), format!("{after:?}"));
}
