//! Commands.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Other;

/// Command to run.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub enum Command {
    /// Text for `bash -lc`.
    #[serde(rename = "command")]
    Shell(String),
    /// Program and arguments.
    #[serde(rename = "argv")]
    Argv(Vec<String>),
}

/// Request to run a command.
#[derive(Clone, PartialEq)]
pub struct RunCommand {
    /// Command to run.
    pub command: Command,
    /// Working directory. `None`: the user's home directory.
    pub cwd: Option<String>,
    /// Environment variables added to the sandbox's.
    pub env: BTreeMap<String, String>,
    /// User inside the sandbox. `None`: the sandbox's default user.
    pub user: Option<String>,
    /// Maximum run time in seconds. `None`: the server's default.
    pub timeout: Option<f64>,
}

impl RunCommand {
    /// Creates a request with text for the shell.
    pub fn shell(text: impl Into<String>) -> Self {
        Self::new(Command::Shell(text.into()))
    }

    /// Creates a request with a program and its arguments.
    pub fn argv<S: Into<String>>(arguments: impl IntoIterator<Item = S>) -> Self {
        Self::new(Command::Argv(
            arguments.into_iter().map(Into::into).collect(),
        ))
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
        // Commands may contain secrets.
        f.write_str("Command(..)")
    }
}

sandyard_core::debug_fields!(RunCommand: cwd);

/// Result of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandResult {
    /// Standard output of the command.
    #[serde(default)]
    pub stdout: String,
    /// Standard error of the command.
    #[serde(default)]
    pub stderr: String,
    /// Exit code, or 128 + n if signal n ended the command.
    pub exit_code: i32,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Command started in the background.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartedCommand {
    /// Process ID inside the sandbox.
    pub process_id: u32,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Running command of a sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Process ID inside the sandbox.
    pub pid: u32,
    /// Program that runs.
    pub command: String,
    /// Arguments of the program.
    #[serde(default)]
    pub args: Vec<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}
