//! One shell in a terminal of its own.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pty_process::OwnedWritePty;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::io::AsyncWriteExt;
use tokio::sync::{oneshot, watch};

use super::follow::follow;
use super::marks::{Marks, Part};
use super::program::Program;
use super::screen::{COLUMNS, ROWS, Screen};
use super::state::{Doing, Finished, Running, State};
use super::stop::Process;
use super::typed;
use crate::reply::Problem;

/// How long typing may take when nobody reads it.
const MAX_TYPING: Duration = Duration::from_secs(5);

/// A shell with a name.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) name: String,
    pub(super) program: Program,
    /// The shell's process, and its session and process group as well.
    pub(super) pid: rustix::process::Pid,
    /// The same, not to be mistaken for a later one.
    pub(super) leader: Process,
    /// The terminal's own side.
    pub(super) terminal: OwnedFd,
    /// The terminal's settings when a command begins.
    settings: Option<Termios>,
    keyboard: tokio::sync::Mutex<OwnedWritePty>,
    state: Mutex<State>,
    /// Changes with everything that happens.
    steps: watch::Sender<Steps>,
}

/// How far a session is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steps {
    /// Commands that began.
    pub(super) begun: u64,
    /// Commands that ended.
    pub(super) finished: u64,
    /// Times output came.
    pub(super) said: u64,
    /// Whether the shell ended.
    pub(super) is_ended: bool,
}

impl Session {
    /// Starts a shell in a folder. It is busy until it is ready.
    pub(super) fn start(name: &str, program: Program, folder: &Path) -> io::Result<Arc<Self>> {
        let (pty, pts) = pty_process::open().map_err(io::Error::other)?;
        pty.resize(pty_process::Size::new(ROWS, COLUMNS))
            .map_err(io::Error::other)?;
        let terminal = pty.as_fd().try_clone_to_owned()?;
        let settings = tcgetattr(&terminal).ok().map(|mut settings| {
            // What is typed is not to be read again as output.
            settings
                .local_modes
                .remove(LocalModes::ECHO | LocalModes::ECHONL);
            settings
                .input_modes
                .insert(rustix::termios::InputModes::IUTF8);
            settings
        });
        let child = program
            .command(folder)
            .spawn(pts)
            .map_err(io::Error::other)?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        let pid = pid.and_then(rustix::process::Pid::from_raw);
        let leader = pid.and_then(Process::of);
        let (Some(pid), Some(leader)) = (pid, leader) else {
            return Err(io::Error::other("the shell ended at once"));
        };
        let (reader, writer) = pty.into_split();
        let session = Arc::new(Self {
            name: name.to_owned(),
            program,
            pid,
            leader,
            terminal,
            settings,
            keyboard: tokio::sync::Mutex::new(writer),
            state: Mutex::new(State {
                screen: Screen::default(),
                marks: Marks::default(),
                doing: Doing::Nothing,
                number: 0,
                cwd: folder.to_owned(),
                last: None,
            }),
            steps: watch::Sender::default(),
        });
        session
            .begin(&session.program.first_command(folder), None)
            .map_err(io::Error::other)?;
        tokio::spawn(follow(session.clone(), reader, child));
        Ok(session)
    }

    /// Waits until the shell takes commands; whether it does in time.
    pub(super) async fn is_ready(&self, limit: Duration) -> bool {
        let mut steps = self.steps.subscribe();
        let ready = steps.wait_for(|steps| steps.finished > 0 || steps.is_ended);
        let in_time = tokio::time::timeout(limit, ready).await;
        in_time.is_ok_and(|steps| steps.is_ok_and(|steps| !steps.is_ended))
    }

    /// Begins a command: its number, and what is told when it has ended.
    pub(super) fn begin(
        self: &Arc<Self>,
        command: &str,
        description: Option<String>,
    ) -> Result<(u64, oneshot::Receiver<Arc<Finished>>), Problem> {
        let (done, wait) = oneshot::channel();
        let mut state = self.state();
        match &state.doing {
            Doing::Nothing => {}
            Doing::Command(running) => return Err(running.is_in_the_way(&self.name)),
            Doing::Ended(_) => {
                return Err(Problem::new(format!(
                    "the shell of session {} has just ended: try again, which starts a new one",
                    self.name
                )));
            }
        }
        let nonce = typed::nonce();
        state.number += 1;
        let number = state.number;
        state.marks.look_for(typed::mark_start(&nonce));
        state.doing = Doing::Command(Running {
            number,
            command: command.to_owned(),
            description,
            since: Instant::now(),
            done: Some(done),
        });
        let last = state.last.as_ref().map_or(0, |last| last.exit_code);
        drop(state);
        let lines = typed::lines(self.program.kind, &nonce, command, last);
        let session = self.clone();
        // Not part of the call: half a line must never be all that is typed.
        tokio::spawn(async move {
            let mut keyboard = session.keyboard.lock().await;
            session.settle();
            for line in lines {
                if keyboard.write_all(line.as_bytes()).await.is_err() {
                    break;
                }
            }
        });
        Ok((number, wait))
    }

    /// Gives the terminal the settings commands begin with, and throws away input nobody read.
    fn settle(&self) {
        if let Some(settings) = &self.settings {
            // Where it does not work, the settings are what the last command left: that is all.
            let _ = tcsetattr(&self.terminal, OptionalActions::Flush, settings);
        }
    }

    /// Types into the terminal, for what runs there.
    pub(super) async fn write(&self, input: &[u8]) -> Result<(), Problem> {
        let write = async { self.keyboard.lock().await.write_all(input).await };
        match tokio::time::timeout(MAX_TYPING, write).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Problem::new(format!(
                "the input could not be typed: {error}"
            ))),
            Err(_) => Err(Problem::new(
                "what runs there does not read its input; a part of it may have been typed. See what it does with BashView",
            )),
        }
    }

    /// Takes what the terminal said.
    pub(super) fn hear(&self, bytes: &[u8]) {
        let mut guard = self.state();
        let state = &mut *guard;
        let mut marks = std::mem::take(&mut state.marks);
        let (mut has_begun, mut has_finished) = (None, None);
        marks.feed(bytes, |part| match part {
            Part::Output(bytes) => state.screen.feed(bytes),
            Part::Begin => {
                // What came before is of the time between commands.
                state.screen = Screen::default();
                has_begun = Some(state.number);
            }
            Part::End(code) => {
                if matches!(state.doing, Doing::Command(_)) {
                    state.cwd = self.cwd().unwrap_or_else(|| state.cwd.clone());
                    has_finished = state.finish(code, Doing::Nothing);
                }
            }
        });
        state.marks = marks;
        drop(guard);
        self.steps.send_modify(|steps| {
            steps.said += 1;
            steps.begun = has_begun.unwrap_or(steps.begun);
            steps.finished = has_finished.unwrap_or(steps.finished);
        });
    }

    /// The shell has ended.
    pub(super) fn end(&self, code: i32) {
        let finished = self.state().finish(code, Doing::Ended(code));
        self.steps.send_modify(|steps| {
            steps.finished = finished.unwrap_or(steps.finished);
            steps.is_ended = true;
        });
    }

    /// Where the shell is now.
    pub(super) fn cwd(&self) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/{}/cwd", self.pid.as_raw_nonzero())).ok()
    }

    /// What happens, to be waited for.
    pub(super) fn steps(&self) -> watch::Receiver<Steps> {
        self.steps.subscribe()
    }

    /// Everything that changes.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the shell has ended.
    pub(super) fn is_ended(&self) -> bool {
        matches!(self.state().doing, Doing::Ended(_))
    }
}
