//! Errors and warnings about settings.

use std::fmt;

use crate::source::Origin;

/// An error or a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The source of the value, if there is one.
    pub origin: Option<Origin>,
    /// The setting that it concerns.
    pub key: Option<String>,
    /// What is wrong. Never contains a secret.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            origin: None,
            key: None,
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn at(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }

    pub(crate) fn about(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Its line in the configuration file; 0 if there is none.
    pub(crate) fn line(&self) -> usize {
        match &self.origin {
            Some(Origin::File { line, .. }) => *line,
            _ => 0,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{origin}: ")?;
        }
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// All errors and warnings about the settings. Displays one error per line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.errors))]
pub struct Problems {
    /// The errors; never empty.
    pub errors: Vec<Problem>,
    /// The warnings.
    pub warnings: Vec<Problem>,
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    lines.join("\n")
}
