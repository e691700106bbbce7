//! What a session is doing.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::kept::Shown;
use super::marks::Marks;
use super::screen::Screen;
use crate::reply::Problem;

/// What changes with every command.
#[derive(Debug)]
pub(super) struct State {
    pub(super) screen: Screen,
    pub(super) marks: Marks,
    pub(super) doing: Doing,
    /// Commands so far. The first is ours: it makes the shell ready.
    pub(super) number: u64,
    pub(super) cwd: PathBuf,
    pub(super) last: Option<Arc<Finished>>,
}

/// What a shell is doing.
#[derive(Debug)]
pub(super) enum Doing {
    Nothing,
    Command(Running),
    /// It ended with this exit code.
    Ended(i32),
}

/// A command that runs.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) number: u64,
    pub(super) command: String,
    pub(super) description: Option<String>,
    pub(super) since: Instant,
    pub(super) done: Option<oneshot::Sender<Arc<Finished>>>,
}

/// A command that ended.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) number: u64,
    pub(super) output: Shown,
    pub(super) exit_code: i32,
    pub(super) took: Duration,
    pub(super) cwd: PathBuf,
    /// The shell ended with it.
    pub(super) is_end: bool,
}

impl State {
    /// Ends the command that runs, if one does; its number.
    pub(super) fn finish(&mut self, exit_code: i32, then: Doing) -> Option<u64> {
        let is_end = matches!(then, Doing::Ended(_));
        let Doing::Command(mut running) = std::mem::replace(&mut self.doing, then) else {
            return None;
        };
        let finished = Arc::new(Finished {
            number: running.number,
            output: self.screen.shown(),
            exit_code,
            took: running.since.elapsed(),
            cwd: self.cwd.clone(),
            is_end,
        });
        if let Some(done) = running.done.take() {
            // Nobody may be waiting any more.
            let _ = done.send(finished.clone());
        }
        self.last = Some(finished);
        Some(running.number)
    }
}

impl Running {
    /// Why no other command can begin.
    pub(super) fn is_in_the_way(&self, name: &str) -> Problem {
        Problem::new(format!(
            "session {name} is busy: `{}` has been running for {:.0} s. Look at it with BashView, answer it with \
             BashWriteToProcess, stop it with BashStop, or use another session name",
            super::told::short(&self.command),
            self.since.elapsed().as_secs_f64(),
        ))
    }
}
