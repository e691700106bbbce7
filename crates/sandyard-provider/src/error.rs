//! Failures of a provider: by kind, for the answer; by whether trying again may help, for layers.

use std::error::Error;
use std::fmt;
use std::time::Duration;

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

impl ProviderErrorKind {
    /// Its name in logs, measurements and on the way to another node.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::Invalid => "invalid",
            Self::NoCapacity => "no_capacity",
            Self::Unsupported => "unsupported",
            Self::TimedOut => "timed_out",
            Self::Unavailable => "unavailable",
            Self::Failed => "failed",
        }
    }
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
    /// How long to wait before trying again, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
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
            retry_after: None,
            source: None,
        }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }

    /// Says that trying again helps, and after how long.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry = Retry::Later;
        self.retry_after = Some(wait);
        self
    }

    /// The same failure once more, for whoever asks again before anything was tried again. Its cause is kept in words.
    #[must_use]
    pub fn again(&self) -> Self {
        Self {
            kind: self.kind,
            retry: self.retry,
            message: self.message.clone(),
            hint: self.hint.clone(),
            retry_after: self.retry_after,
            source: self.source.as_ref().map(|source| source.to_string().into()),
        }
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
