//! All sessions by name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::program::Program;
use super::session::Session;
use super::stop;
use crate::reply::{Problem, Result};
use crate::workspace::Workspace;

/// Maximum number of sessions.
pub(super) const MAX_SESSIONS: usize = 32;
/// Time limit for the shell's start-up files.
const MAX_START: Duration = Duration::from_secs(15);
/// Maximum length of a name.
const MAX_NAME: usize = 64;

/// All sessions by name.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    by_name: Mutex<BTreeMap<String, Arc<Session>>>,
    /// Shell to run instead of the default.
    #[cfg(test)]
    pub(super) program: Option<Program>,
    /// Time limit for its start.
    #[cfg(test)]
    pub(super) max_start: Option<Duration>,
}

/// Where a session comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Obtained {
    /// It existed.
    Existing,
    /// It is new.
    New,
    /// It is new because the shell of the old one had ended.
    Restarted,
}

impl Sessions {
    /// All sessions in order, including ended ones.
    pub(super) fn all(&self) -> Vec<Arc<Session>> {
        self.by_name.lock().values().cloned().collect()
    }

    /// Finds a session.
    pub(super) fn find(&self, name: &str) -> Result<Arc<Session>> {
        check_name(name)?;
        let sessions = self.by_name.lock();
        sessions.get(name).cloned().ok_or_else(|| {
            let names: Vec<_> = sessions.keys().map(String::as_str).collect();
            let names = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            Problem::new(format!(
                "session {name} does not exist (existing: {names}). Bash or BashInit creates it"
            ))
        })
    }

    /// Removes a session that has ended.
    pub(super) fn remove(&self, session: &Arc<Session>) {
        let mut sessions = self.by_name.lock();
        if sessions
            .get(&session.name)
            .is_some_and(|other| Arc::ptr_eq(other, session))
        {
            sessions.remove(&session.name);
        }
    }

    /// Returns the session with this name. Creates it if it does not exist or its shell has ended.
    pub(super) async fn obtain(
        &self,
        workspace: &Workspace,
        name: &str,
        folder: Option<PathBuf>,
    ) -> Result<(Arc<Session>, Obtained)> {
        check_name(name)?;
        let program = self.program();
        // If the start-up files do not end, start the shell without them.
        for (program, limit) in [
            (program.clone(), self.max_start()),
            (program.without_startup_files(), MAX_START),
        ] {
            let (session, obtained) =
                self.find_or_start(workspace, name, folder.as_deref(), program)?;
            if session.is_ready(limit).await {
                return Ok((session, obtained));
            }
            stop::end(&session).await;
            self.remove(&session);
        }
        Err(Problem::new(
            "the shell does not start, not even without start-up files. run_command may still work",
        ))
    }

    fn find_or_start(
        &self,
        workspace: &Workspace,
        name: &str,
        folder: Option<&Path>,
        program: Program,
    ) -> Result<(Arc<Session>, Obtained)> {
        let mut sessions = self.by_name.lock();
        let mut folder = folder.unwrap_or(workspace.root()).to_owned();
        let mut obtained = Obtained::New;
        if let Some(before) = sessions.get(name) {
            if !before.is_ended() {
                return Ok((before.clone(), Obtained::Existing));
            }
            let last = before.state().cwd.clone();
            if workspace.contains(&last) && last.is_dir() {
                folder = last;
            }
            obtained = Obtained::Restarted;
        }
        if sessions.len() >= MAX_SESSIONS {
            sessions.retain(|_, session| !session.is_ended());
        }
        if sessions.len() >= MAX_SESSIONS && !sessions.contains_key(name) {
            return Err(Problem::new(format!(
                "the maximum of {MAX_SESSIONS} sessions is reached: use one that BashList shows, or end one with BashStop and \
                 kill_session"
            )));
        }
        let session = Session::start(name, program, &folder).map_err(|error| {
            Problem::new(format!(
                "cannot start a shell in {}: {error}",
                folder.display()
            ))
        })?;
        sessions.insert(name.to_owned(), session.clone());
        Ok((session, obtained))
    }

    fn program(&self) -> Program {
        #[cfg(test)]
        if let Some(program) = &self.program {
            return program.clone();
        }
        Program::find()
    }

    fn max_start(&self) -> Duration {
        #[cfg(test)]
        if let Some(limit) = self.max_start {
            return limit;
        }
        MAX_START
    }
}

/// Checks the name of a session.
pub(super) fn check_name(name: &str) -> Result<()> {
    let is_good = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '.' | '-');
    if !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_good) {
        return Ok(());
    }
    Err(Problem::new(format!(
        "session_name must be 1 to {MAX_NAME} letters, digits, `_`, `.` or `-`"
    )))
}
