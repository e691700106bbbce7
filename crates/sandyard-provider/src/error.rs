//! Failures of a provider: by kind, for the answer; by whether trying again may help, for layers.

use std::error::Error;
use std::fmt;

use serde::{Deserialize, Serialize};

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ProviderErrorKind {
    /// No such instance or template.
    NotFound,
    /// The instance's state does not allow it, or a template of that name exists.
    Conflict,
    /// The request makes no sense.
    Invalid,
    /// There is no room.
    NoCapacity,
    /// It cannot be done there.
    Unsupported,
    /// It took too long.
    TimedOut,
    /// It cannot be reached.
    Unavailable,
    /// It failed.
    Failed,
}

/// Whether the same call may end differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    /// Not without a change.
    Never,
    /// After a while.
    Later,
}

/// A failed call.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProviderError {
    /// What kind of failure it is.
    pub kind: ProviderErrorKind,
    /// Whether trying again may help.
    pub retry: Retry,
    /// What went wrong, fit for the caller's eyes.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Why, for the log.
    #[serde(skip)]
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

impl ProviderError {
    /// A failure of `kind`; whether to try again follows from the kind.
    pub fn new(kind: ProviderErrorKind, message: impl Into<String>) -> Self {
        let retry = match kind {
            ProviderErrorKind::NoCapacity
            | ProviderErrorKind::TimedOut
            | ProviderErrorKind::Unavailable => Retry::Later,
            _ => Retry::Never,
        };
        Self {
            kind,
            retry,
            message: message.into(),
            hint: None,
            source: None,
        }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }

    /// Adds why.
    #[must_use]
    pub fn source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ProviderError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
