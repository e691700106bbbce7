//! Commands.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Other;

/// What to run.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub enum Command {
    /// A text for `bash -lc`.
    #[serde(rename = "command")]
    Shell(String),
    /// A program and its arguments, as they are.
    #[serde(rename = "argv")]
    Argv(Vec<String>),
}

/// A command to be run.
#[derive(Clone, PartialEq)]
pub struct RunCommand {
    /// What.
    pub command: Command,
    /// Where; none: the user's home.
    pub cwd: Option<String>,
    /// Variables on top of the sandbox's.
    pub env: BTreeMap<String, String>,
    /// As whom; none: the sandbox's user.
    pub user: Option<String>,
    /// How many seconds it may take; none: up to the server.
    pub timeout: Option<f64>,
}

impl RunCommand {
    /// A text for the shell.
    pub fn shell(text: impl Into<String>) -> Self {
        Self::new(Command::Shell(text.into()))
    }

    /// A program and its arguments.
    pub fn argv<S: Into<String>>(words: impl IntoIterator<Item = S>) -> Self {
        Self::new(Command::Argv(words.into_iter().map(Into::into).collect()))
    }

    fn new(command: Command) -> Self {
        Self {
            command,
            cwd: None,
            env: BTreeMap::new(),
            user: None,
            timeout: None,
        }
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Commands carry secrets often enough.
        f.write_str("Command(..)")
    }
}

impl fmt::Debug for RunCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunCommand")
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

/// What a command wrote and how it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandResult {
    /// From its standard output.
    #[serde(default)]
    pub stdout: String,
    /// From its standard error.
    #[serde(default)]
    pub stderr: String,
    /// How it ended; 128 + n after signal n.
    pub exit_code: i32,
    /// What else was said.
    #[serde(flatten)]
    pub other: Other,
}

/// A command that goes on without us.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartedCommand {
    /// Its process id inside.
    pub process_id: u32,
    /// What else was said.
    #[serde(flatten)]
    pub other: Other,
}
