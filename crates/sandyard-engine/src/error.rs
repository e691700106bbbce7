//! Errors, in a form that can be sent from the worker to the client.

use std::error::Error;
use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

use sandyard_template::TemplateError;

use crate::sys::SysError;

/// The kind of failure, for callers to branch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// No such sandbox or template.
    NotFound,
    /// The sandbox is in a state that does not allow this.
    Conflict,
    /// Another request on the sandbox did not finish in time.
    Busy,
    /// The request is invalid.
    Invalid,
    /// The host has too little disk space, memory or ids for it.
    NoCapacity,
    /// This host cannot do it.
    Unsupported,
    /// The launcher cannot be reached or does not answer.
    Unavailable,
    /// The kernel refused, or the engine has a bug.
    Failed,
}

/// A failed request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineError {
    /// The kind of failure.
    pub kind: ErrorKind,
    /// What was being done, and why it failed.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Undo steps that failed too. The next sweep repeats them.
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
    pub(crate) fn failed(operation: impl fmt::Display, source: &(dyn Error + 'static)) -> Self {
        let kind = match is_disk_full(source) {
            true => ErrorKind::NoCapacity,
            false => ErrorKind::Failed,
        };
        Self::new(kind, format!("{operation}: {}", chain(source)))
    }

    /// Wraps a failure of the template store.
    pub(crate) fn template(operation: impl fmt::Display, source: &TemplateError) -> Self {
        let kind = match source {
            TemplateError::BadName { .. }
            | TemplateError::ReservedName { .. }
            | TemplateError::TooManyLayers { .. }
            | TemplateError::LimitExceeded { .. }
            | TemplateError::BadArchive { .. } => ErrorKind::Invalid,
            TemplateError::Exists { .. } => ErrorKind::Conflict,
            _ if is_disk_full(source) => ErrorKind::NoCapacity,
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
            ..Self::failed(operation, source)
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

/// Says whether an error was caused by a full disk.
fn is_disk_full(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let io = error.downcast_ref::<io::Error>();
        let errno = error.downcast_ref::<rustix::io::Errno>();
        let code = io.and_then(io::Error::raw_os_error);
        let code = code.or_else(|| errno.map(|errno| errno.raw_os_error()));
        if matches!(code, Some(libc::ENOSPC | libc::EDQUOT)) {
            return true;
        }
        next = error.source();
    }
    false
}

/// An error with its causes, as text.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_a_lack_of_capacity_however_deep_it_is_found() {
        let full = || io::Error::from_raw_os_error(libc::ENOSPC);
        let wrapped = SysError {
            operation: "write",
            target: "file".to_owned(),
            source: full(),
        };
        for source in [&full() as &(dyn Error + 'static), &wrapped] {
            let error = EngineError::failed("writing", source);
            assert_eq!(error.kind, ErrorKind::NoCapacity);
        }
        let other = io::Error::from_raw_os_error(libc::EIO);
        assert_eq!(
            EngineError::failed("writing", &other).kind,
            ErrorKind::Failed
        );
    }
}
