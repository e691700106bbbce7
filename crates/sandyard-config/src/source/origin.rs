//! Where a value was said.

use std::fmt;
use std::path::PathBuf;

/// Points at the place where a value comes from, so that people can find and change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// A flag: `--port`.
    Flag(String),
    /// A variable of the environment.
    Variable(String),
    /// A line of a `.env` file.
    EnvFile {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// The variable set there.
        name: String,
    },
    /// A line of the configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
    },
}

impl Origin {
    /// The variable that said it, if one did.
    pub(crate) fn variable(&self) -> Option<&str> {
        match self {
            Self::Variable(name) | Self::EnvFile { name, .. } => Some(name),
            _ => None,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Flag(flag) => write!(f, "flag {flag}"),
            Self::Variable(name) => write!(f, "variable {name}"),
            Self::EnvFile { path, line, name } => {
                write!(f, "{}:{line}, variable {name}", path.display())
            }
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
        }
    }
}
