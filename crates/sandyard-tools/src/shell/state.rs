//! State of a session.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::bounded_text::Excerpt;
use super::markers::MarkerParser;
use super::screen::Screen;
use crate::reply::Problem;

/// The part of a session that commands change.
#[derive(Debug)]
pub(super) struct State {
    pub(super) screen: Screen,
    pub(super) markers: MarkerParser,
    pub(super) activity: Activity,
    /// Number of commands so far. The first one is internal: it prepares the shell.
    pub(super) number: u64,
    pub(super) cwd: PathBuf,
    pub(super) last: Option<Arc<Finished>>,
}

/// What a shell does.
#[derive(Debug)]
pub(super) enum Activity {
    Idle,
    Command(Running),
    /// The shell ended with this exit code.
    Ended(i32),
}

/// A running command.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) number: u64,
    pub(super) command: String,
    pub(super) description: Option<String>,
    pub(super) since: Instant,
    pub(super) done: Option<oneshot::Sender<Arc<Finished>>>,
}

/// A command that has ended.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) number: u64,
    pub(super) output: Excerpt,
    pub(super) exit_code: i32,
    pub(super) duration: Duration,
    pub(super) cwd: PathBuf,
    /// Whether the shell ended with it.
    pub(super) ended_shell: bool,
}

impl State {
    /// Records the end of the running command, if there is one, and returns its number.
    pub(super) fn finish(&mut self, exit_code: i32, then: Activity) -> Option<u64> {
        let ended_shell = matches!(then, Activity::Ended(_));
        let Activity::Command(mut running) = std::mem::replace(&mut self.activity, then) else {
            return None;
        };
        let finished = Arc::new(Finished {
            number: running.number,
            output: self.screen.excerpt(),
            exit_code,
            duration: running.since.elapsed(),
            cwd: self.cwd.clone(),
            ended_shell,
        });
        if let Some(done) = running.done.take() {
            // The caller may be gone.
            let _ = done.send(finished.clone());
        }
        self.last = Some(finished);
        Some(running.number)
    }
}

impl Running {
    /// The error for another command.
    pub(super) fn busy_problem(&self, name: &str) -> Problem {
        Problem::new(format!(
            "session {name} is busy: `{}` has been running for {:.0} s. View it with BashView, type into it with BashWriteToProcess, \
             stop it with BashStop, or use another session",
            super::replies::short(&self.command),
            self.since.elapsed().as_secs_f64(),
        ))
    }
}
