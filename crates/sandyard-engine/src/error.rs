//! What can go wrong, in a form that travels from the worker to the client.

use std::error::Error;
use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

use sandyard_template::TemplateError;

use crate::sys::SysError;

/// What kind of failure it is: what a caller can branch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// No such sandbox or template.
    NotFound,
    /// The sandbox is in a state that does not allow this.
    Conflict,
    /// Somebody else is working on the sandbox and did not finish in time.
    Busy,
    /// The request makes no sense.
    Invalid,
    /// The host has no room for it.
    NoCapacity,
    /// This host cannot do it.
    Unsupported,
    /// The launcher cannot be reached or does not answer.
    Unavailable,
    /// The kernel refused, or the engine is wrong.
    Failed,
}

/// A failed request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineError {
    /// What kind of failure it is.
    pub kind: ErrorKind,
    /// What was being done, and why it failed.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Undo steps that failed too. The next sweep tries them again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cleanup: Vec<String>,
}

/// Result of an engine request.
pub type Result<T, E = EngineError> = std::result::Result<T, E>;

impl EngineError {
    /// Makes an error of `kind`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
            cleanup: Vec::new(),
        }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Wraps a failure with what was being done.
    pub(crate) fn failed(doing: impl fmt::Display, source: &(dyn Error + 'static)) -> Self {
        Self::new(ErrorKind::Failed, format!("{doing}: {}", chain(source)))
    }

    /// Wraps a failure of the template store.
    pub(crate) fn template(doing: impl fmt::Display, source: &TemplateError) -> Self {
        let kind = match source {
            TemplateError::BadName { .. }
            | TemplateError::ReservedName { .. }
            | TemplateError::TooManyLayers { .. }
            | TemplateError::LimitExceeded { .. }
            | TemplateError::BadArchive { .. } => ErrorKind::Invalid,
            TemplateError::Exists { .. } => ErrorKind::Conflict,
            _ => ErrorKind::Failed,
        };
        let hint = match source {
            TemplateError::Exists { name } => {
                Some(format!("remove it first: `sandyard template rm {name}`"))
            }
            _ => None,
        };
        Self {
            kind,
            hint,
            ..Self::failed(doing, source)
        }
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for failure in &self.cleanup {
            write!(f, "; undo also failed: {failure}")?;
        }
        Ok(())
    }
}

impl Error for EngineError {}

impl From<io::Error> for EngineError {
    fn from(error: io::Error) -> Self {
        Self::failed("talking to the launcher", &error)
    }
}

impl From<SysError> for EngineError {
    fn from(error: SysError) -> Self {
        let kind = match error.raw_os_error() {
            Some(
                libc::ENOSPC
                | libc::EDQUOT
                | libc::EMFILE
                | libc::ENFILE
                | libc::ENOMEM
                | libc::EAGAIN,
            ) => ErrorKind::NoCapacity,
            _ => ErrorKind::Failed,
        };
        Self::new(kind, chain(&error))
    }
}

/// Renders an error with its causes.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
