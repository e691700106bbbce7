//! Errors of a provider: by kind, for the API's answer; by whether a retry may help, for layers.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ProviderErrorKind {
    /// There is no such instance, template or volume.
    NotFound,
    /// The instance's state does not allow it, or a template of that name exists.
    Conflict,
    /// The request is not valid.
    Invalid,
    /// The provider is full.
    NoCapacity,
    /// The provider cannot do this.
    Unsupported,
    /// The provider did not answer in time.
    TimedOut,
    /// The provider cannot be reached.
    Unavailable,
    /// The call failed.
    Failed,
}

impl ProviderErrorKind {
    /// Its name in logs, in metrics and between nodes.
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

/// Whether a retry may succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    /// Not the same call.
    Never,
    /// The same call may succeed later.
    Later,
}

/// The error of a provider call.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProviderError {
    /// The kind of error.
    pub kind: ProviderErrorKind,
    /// Whether a retry may succeed.
    pub retry: Retry,
    /// What went wrong, for the API's caller.
    pub message: String,
    /// What the caller can do about it.
    pub hint: Option<String>,
    /// How long to wait before a retry, where the provider says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
    /// The cause, for the log.
    #[serde(skip)]
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

impl ProviderError {
    /// An error of `kind`; whether a retry may succeed follows from the kind.
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

    /// Adds what the caller can do about it.
    #[must_use]
    pub fn hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }

    /// Marks the error as one that a retry after `wait` may solve.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry = Retry::Later;
        self.retry_after = Some(wait);
        self
    }

    /// A copy, whose cause is reduced to its text.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        Self {
            kind: self.kind,
            retry: self.retry,
            message: self.message.clone(),
            hint: self.hint.clone(),
            retry_after: self.retry_after,
            source: self.source.as_ref().map(|source| source.to_string().into()),
        }
    }

    /// Adds the cause.
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
