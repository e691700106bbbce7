//! The shells there are, by name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::program::Program;
use super::session::Session;
use super::stop;
use crate::reply::Problem;
use crate::workspace::Workspace;

/// Most shells at a time.
pub(super) const MAX_SESSIONS: usize = 32;
/// How long a shell may take over its start-up files.
const MAX_START: Duration = Duration::from_secs(15);
/// Longest name.
const MAX_NAME: usize = 64;

/// Shells by name.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    by_name: Mutex<BTreeMap<String, Arc<Session>>>,
    /// Which shell is run instead of the usual.
    #[cfg(test)]
    pub(super) program: Option<Program>,
    /// How long that one may take to start.
    #[cfg(test)]
    pub(super) max_start: Option<Duration>,
}

/// How a session was come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Had {
    /// It was there.
    Already,
    /// It is new.
    New,
    /// It is new because the shell before had ended.
    Again,
}

impl Sessions {
    /// All of them in order, those that have ended too.
    pub(super) fn all(&self) -> Vec<Arc<Session>> {
        self.lock().values().cloned().collect()
    }

    /// The one with this name.
    pub(super) fn find(&self, name: &str) -> Result<Arc<Session>, Problem> {
        check_name(name)?;
        let known = self.lock();
        known.get(name).cloned().ok_or_else(|| {
            let names: Vec<_> = known.keys().map(String::as_str).collect();
            let names = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            Problem::new(format!(
                "there is no session {name} (there are: {names}). Bash or BashInit makes one"
            ))
        })
    }

    /// Forgets one that has ended.
    pub(super) fn forget(&self, session: &Arc<Session>) {
        let mut known = self.lock();
        if known
            .get(&session.name)
            .is_some_and(|other| Arc::ptr_eq(other, session))
        {
            known.remove(&session.name);
        }
    }

    /// The one with this name, made where there is none that lives.
    pub(super) async fn obtain(
        &self,
        workspace: &Workspace,
        name: &str,
        folder: Option<PathBuf>,
    ) -> Result<(Arc<Session>, Had), Problem> {
        check_name(name)?;
        let program = self.program();
        // Start-up files that do not come to an end must not be the end of all shells.
        for (program, limit) in [
            (program.clone(), self.max_start()),
            (program.plain(), MAX_START),
        ] {
            let (session, had) = self.find_or_start(workspace, name, folder.as_deref(), program)?;
            if session.is_ready(limit).await {
                return Ok((session, had));
            }
            stop::end(&session).await;
            self.forget(&session);
        }
        Err(Problem::new(
            "the shell does not become ready, not even without its start-up files. run_command may still work",
        ))
    }

    fn find_or_start(
        &self,
        workspace: &Workspace,
        name: &str,
        folder: Option<&Path>,
        program: Program,
    ) -> Result<(Arc<Session>, Had), Problem> {
        let mut known = self.lock();
        let mut folder = folder.unwrap_or(workspace.root()).to_owned();
        let mut had = Had::New;
        if let Some(before) = known.get(name) {
            if !before.is_ended() {
                return Ok((before.clone(), Had::Already));
            }
            let last = before.state().cwd.clone();
            if workspace.contains(&last) && last.is_dir() {
                folder = last;
            }
            had = Had::Again;
        }
        if known.len() >= MAX_SESSIONS {
            known.retain(|_, session| !session.is_ended());
        }
        if known.len() >= MAX_SESSIONS && !known.contains_key(name) {
            return Err(Problem::new(format!(
                "there are {MAX_SESSIONS} sessions already, which is the most: use one of those that BashList shows, \
                 or end one \
                 with BashStop and kill_session"
            )));
        }
        let session = Session::start(name, program, &folder).map_err(|error| {
            Problem::new(format!(
                "no shell could be started in {}: {error}",
                folder.display()
            ))
        })?;
        known.insert(name.to_owned(), session.clone());
        Ok((session, had))
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

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Session>>> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether it can be a name.
pub(super) fn check_name(name: &str) -> Result<(), Problem> {
    let is_good = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '.' | '-');
    if !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_good) {
        return Ok(());
    }
    Err(Problem::new(format!(
        "session_name must be 1 to {MAX_NAME} letters, digits, `_`, `.` or `-`"
    )))
}
