//! What a probe is sent in to do, as the JSON that arrives on its command line.

use serde::{Deserialize, Serialize};

use crate::greeting_server::{GreetingServer, serve_greeting};
use crate::plan::Plan;
use crate::resources::Exhaust;
use crate::run::run;

/// One task inside a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Try every way out; answers with a [`crate::Report`].
    Escape(Box<Plan>),
    /// Use something up; answers with a [`crate::resources::Exhausted`].
    Exhaust(Exhaust),
    /// Listen, so that another sandbox can be asked to reach it; answers with one line and stays.
    GreetingServer(GreetingServer),
    /// `kill(-1, SIGKILL)`: end all that can be ended. There is no answer; the agent must live on.
    KillAll,
}

/// Why a task was not done.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The JSON is not that of a task.
    #[error("failed to read the probe's task")]
    Read(#[source] serde_json::Error),
    /// The answer could not be written as JSON.
    #[error("failed to write the probe's answer")]
    Write(#[source] serde_json::Error),
    /// The server could not listen.
    #[error("failed to start the greeting server")]
    GreetingServer(#[source] std::io::Error),
    /// The resource check could not be set up.
    #[error("failed to set up the resource check")]
    Exhaust(#[source] std::io::Error),
}

impl Task {
    /// The task as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a task has only string keys and plain values")
    }
}

/// Does a task and returns its answer as one line of JSON. The process must be single-threaded.
///
/// A greeting server calls `announce` with its line once it listens, and then returns only with an error.
///
/// # Errors
/// When the task cannot be read or set up. What a check finds is never an error.
pub fn perform(task: &str, announce: impl FnOnce(&str)) -> Result<String, TaskError> {
    match serde_json::from_str(task).map_err(TaskError::Read)? {
        Task::Escape(plan) => serde_json::to_string(&run(*plan)).map_err(TaskError::Write),
        Task::Exhaust(exhaust) => {
            let exhausted = exhaust.run().map_err(TaskError::Exhaust)?;
            serde_json::to_string(&exhausted).map_err(TaskError::Write)
        }
        Task::GreetingServer(server) => {
            serve_greeting(&server, announce).map_err(TaskError::GreetingServer)?;
            Ok(String::new())
        }
        Task::KillAll => {
            // SAFETY: hits every process this user may signal, in this pid namespace, as asked.
            unsafe { libc::kill(-1, libc::SIGKILL) };
            Ok("\"done\"".to_owned())
        }
    }
}
