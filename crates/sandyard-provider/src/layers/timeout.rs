//! An outer bound for every call, for providers that have none of their own.

use std::time::Duration;

use super::layered::{Call, Layer, Work};
use crate::{ProviderError, ProviderErrorKind, Result, Verb};

/// How long calls may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeoutSettings {
    /// Asking whether it can be reached.
    pub health: Duration,
    /// Looking: `inspect`, `usage`, …
    pub read: Duration,
    /// Looking at all there is: `list`, `templates`. It may have any number of pages, each bounded by whoever asks for it.
    pub list: Duration,
    /// Changing what is there: `pause`, `delete`, …
    pub change: Duration,
    /// Making, copying and comparing: `create`, `fork`, `snapshot`, `import_template`, `diff`.
    pub long: Duration,
}

impl Default for TimeoutSettings {
    fn default() -> Self {
        Self {
            health: Duration::from_secs(5),
            read: Duration::from_secs(30),
            list: Duration::from_secs(300),
            change: Duration::from_secs(180),
            // An image may have to come over the network first.
            long: Duration::from_secs(1800),
        }
    }
}

/// Ends calls that take too long.
#[derive(Debug)]
pub(super) struct Timeout(TimeoutSettings);

impl Timeout {
    pub(super) fn new(settings: TimeoutSettings) -> Self {
        Self(settings)
    }

    fn bound(&self, verb: Verb) -> Duration {
        match Effort::of(verb) {
            Effort::Health => self.0.health,
            Effort::Read if matches!(verb, Verb::List | Verb::Templates) => self.0.list,
            Effort::Read => self.0.read,
            Effort::Change => self.0.change,
            Effort::Long => self.0.long,
        }
    }
}

impl Layer for Timeout {
    async fn around<T: Send>(&self, call: &Call<'_>, work: &Work<'_, T>) -> Result<T> {
        let bound = self.bound(call.verb);
        let answer = tokio::time::timeout(bound, work()).await;
        answer.unwrap_or_else(|_| {
            let message = format!(
                "provider `{}` did not answer `{}` within {} s",
                call.provider,
                call.verb,
                bound.as_secs_f64()
            );
            Err(ProviderError::new(ProviderErrorKind::TimedOut, message))
        })
    }
}

/// How much a call is expected to ask of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// Next to nothing, and never to be kept waiting.
    Health,
    /// Looking.
    Read,
    /// Changing what is there.
    Change,
    /// Making, copying and comparing.
    Long,
}

impl Effort {
    pub(super) fn of(verb: Verb) -> Self {
        match verb {
            Verb::CheckHealth => Self::Health,
            // Comparing goes through all files.
            Verb::Create | Verb::Fork | Verb::Snapshot | Verb::ImportTemplate | Verb::Diff => {
                Self::Long
            }
            Verb::Inspect
            | Verb::List
            | Verb::Usage
            | Verb::UsageHistory
            | Verb::Templates
            | Verb::Agent => Self::Read,
            _ => Self::Change,
        }
    }
}
