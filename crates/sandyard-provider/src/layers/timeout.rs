//! Bounds the duration of every call.

use std::time::Duration;

use async_trait::async_trait;

use super::layer::{Layer, Request};
use crate::{Answer, ProviderError, ProviderErrorKind, Result, Verb};

/// How long calls may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeoutSettings {
    /// Health checks.
    pub health: Duration,
    /// Reads of one thing: `inspect`, `usage`, …
    pub read: Duration,
    /// Reads of everything: `list`, `templates`. They may have any number of pages; the provider bounds each.
    pub list: Duration,
    /// Changes: `pause`, `delete`, …
    pub change: Duration,
    /// Creating, copying and comparing: `create`, `fork`, `snapshot`, `import_template`, `diff`.
    pub long: Duration,
}

impl Default for TimeoutSettings {
    fn default() -> Self {
        Self {
            health: Duration::from_secs(5),
            read: Duration::from_secs(30),
            list: Duration::from_secs(300),
            change: Duration::from_secs(180),
            // The provider may have to pull an image first.
            long: Duration::from_secs(1800),
        }
    }
}

/// Ends calls that take too long.
#[derive(Debug)]
pub(super) struct TimeoutLayer(TimeoutSettings);

impl TimeoutLayer {
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

#[async_trait]
impl Layer for TimeoutLayer {
    async fn handle(&self, request: &Request<'_>) -> Result<Answer> {
        let bound = self.bound(request.verb());
        let answer = tokio::time::timeout(bound, request.send()).await;
        answer.unwrap_or_else(|_| {
            let message = format!(
                "provider `{}` did not answer `{}` within {} s",
                request.provider(),
                request.verb(),
                bound.as_secs_f64()
            );
            Err(ProviderError::new(ProviderErrorKind::TimedOut, message))
        })
    }
}

/// How much work a call is for a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// Almost none; the call never waits in a queue.
    Health,
    /// Reading.
    Read,
    /// Changing what exists.
    Change,
    /// Creating, copying and comparing.
    Long,
}

impl Effort {
    pub(super) fn of(verb: Verb) -> Self {
        match verb {
            Verb::CheckHealth => Self::Health,
            // A diff reads all files.
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
