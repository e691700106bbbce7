//! A shell in its own terminal.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use pty_process::OwnedWritePty;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::io::AsyncWriteExt;
use tokio::sync::{oneshot, watch};

use super::command_input;
use super::markers::{MarkerParser, Part};
use super::program::Program;
use super::reader::follow;
use super::screen::{COLUMNS, ROWS, Screen};
use super::state::{Activity, Finished, Running, State};
use super::stop::Process;
use crate::reply::{Problem, Result};

/// Time limit for typing when no program reads the input.
const MAX_TYPING: Duration = Duration::from_secs(5);

/// A named shell.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) name: String,
    pub(super) program: Program,
    /// The shell's process ID, which is also the ID of its session and process group.
    pub(super) pid: rustix::process::Pid,
    /// The shell's process with its start time, so that a reused process ID is recognised.
    pub(super) leader: Process,
    /// The controlling side of the terminal.
    pub(super) terminal: OwnedFd,
    /// Terminal settings at the start of every command.
    settings: Option<Termios>,
    keyboard: tokio::sync::Mutex<OwnedWritePty>,
    state: Mutex<State>,
    /// Changes with every event.
    counters: watch::Sender<SessionCounters>,
}

/// Events of a session so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SessionCounters {
    /// Number of the last command that started.
    pub(super) started: u64,
    /// Number of the last command that ended.
    pub(super) finished: u64,
    /// Number of chunks of output.
    pub(super) outputs: u64,
    /// Returns whether the shell has ended.
    pub(super) is_ended: bool,
}

impl Session {
    /// Starts a shell in a folder. The session is busy until the shell is ready.
    pub(super) fn start(name: &str, program: Program, folder: &Path) -> io::Result<Arc<Self>> {
        let (pty, pts) = pty_process::open().map_err(io::Error::other)?;
        pty.resize(pty_process::Size::new(ROWS, COLUMNS))
            .map_err(io::Error::other)?;
        let terminal = pty.as_fd().try_clone_to_owned()?;
        let settings = tcgetattr(&terminal).ok().map(|mut settings| {
            // No echo: typed input is not output.
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
            return Err(io::Error::other("the shell ended immediately"));
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
                markers: MarkerParser::default(),
                activity: Activity::Idle,
                number: 0,
                cwd: folder.to_owned(),
                last: None,
            }),
            counters: watch::Sender::default(),
        });
        session
            .begin(&session.program.first_command(folder), None)
            .map_err(io::Error::other)?;
        tokio::spawn(follow(session.clone(), reader, child));
        Ok(session)
    }

    /// Waits until the shell accepts commands. Returns whether it does within the limit.
    pub(super) async fn is_ready(&self, limit: Duration) -> bool {
        let mut counters = self.counters.subscribe();
        let ready = counters.wait_for(|counters| counters.finished > 0 || counters.is_ended);
        let in_time = tokio::time::timeout(limit, ready).await;
        in_time.is_ok_and(|counters| counters.is_ok_and(|counters| !counters.is_ended))
    }

    /// Starts a command. Returns its number and a receiver of its result.
    pub(super) fn begin(
        self: &Arc<Self>,
        command: &str,
        description: Option<String>,
    ) -> Result<(u64, oneshot::Receiver<Arc<Finished>>)> {
        let (done, wait) = oneshot::channel();
        let mut state = self.state();
        match &state.activity {
            Activity::Idle => {}
            Activity::Command(running) => return Err(running.busy_problem(&self.name)),
            Activity::Ended(_) => {
                return Err(Problem::new(format!(
                    "the shell of session {} has just ended: try again to start a new one",
                    self.name
                )));
            }
        }
        let nonce = command_input::nonce();
        state.number += 1;
        let number = state.number;
        state.markers.set_start(command_input::marker_start(&nonce));
        state.activity = Activity::Command(Running {
            number,
            command: command.to_owned(),
            description,
            since: Instant::now(),
            done: Some(done),
        });
        let last = state.last.as_ref().map_or(0, |last| last.exit_code);
        drop(state);
        let lines = command_input::lines(self.program.kind, &nonce, command, last);
        let session = self.clone();
        // In its own task: if the call is dropped, the whole line must still be typed.
        tokio::spawn(async move {
            let mut keyboard = session.keyboard.lock().await;
            session.reset_terminal();
            for line in lines {
                if keyboard.write_all(line.as_bytes()).await.is_err() {
                    break;
                }
            }
        });
        Ok((number, wait))
    }

    /// Restores the terminal settings and discards unread input.
    fn reset_terminal(&self) {
        if let Some(settings) = &self.settings {
            let _ = tcsetattr(&self.terminal, OptionalActions::Flush, settings);
        }
    }

    /// Types into the terminal.
    pub(super) async fn write(&self, input: &[u8]) -> Result<()> {
        let write = async { self.keyboard.lock().await.write_all(input).await };
        match tokio::time::timeout(MAX_TYPING, write).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Problem::new(format!(
                "the input could not be typed: {error}"
            ))),
            Err(_) => Err(Problem::new(
                "the program does not read its input; a part of it may have been typed. BashView shows what it does",
            )),
        }
    }

    /// Processes output of the terminal.
    pub(super) fn receive_output(&self, bytes: &[u8]) {
        let mut guard = self.state();
        let state = &mut *guard;
        let mut markers = std::mem::take(&mut state.markers);
        let (mut has_begun, mut has_finished) = (None, None);
        markers.feed(bytes, |part| match part {
            Part::Output(bytes) => state.screen.feed(bytes),
            Part::Begin => {
                // Drop output from before the command.
                state.screen = Screen::default();
                has_begun = Some(state.number);
            }
            Part::End(code) => {
                if matches!(state.activity, Activity::Command(_)) {
                    state.cwd = self.cwd().unwrap_or_else(|| state.cwd.clone());
                    has_finished = state.finish(code, Activity::Idle);
                }
            }
        });
        state.markers = markers;
        drop(guard);
        self.counters.send_modify(|counters| {
            counters.outputs += 1;
            counters.started = has_begun.unwrap_or(counters.started);
            counters.finished = has_finished.unwrap_or(counters.finished);
        });
    }

    /// Records that the shell has ended.
    pub(super) fn end(&self, code: i32) {
        let finished = self.state().finish(code, Activity::Ended(code));
        self.counters.send_modify(|counters| {
            counters.finished = finished.unwrap_or(counters.finished);
            counters.is_ended = true;
        });
    }

    /// The shell's current working directory.
    pub(super) fn cwd(&self) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/{}/cwd", self.pid.as_raw_nonzero())).ok()
    }

    /// The events of the session, to wait for.
    pub(super) fn counters(&self) -> watch::Receiver<SessionCounters> {
        self.counters.subscribe()
    }

    /// The session's state.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Returns whether the shell has ended.
    pub(super) fn is_ended(&self) -> bool {
        matches!(self.state().activity, Activity::Ended(_))
    }
}
