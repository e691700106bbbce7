//! Retries calls that may succeed later, where a second attempt does no harm.

use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::layer::{Layer, Request};
use super::rejected_locally::is_rejected_locally;
use crate::{Answer, ProviderError, Result, Retry, Verb};

/// How often, and for how long, a call is retried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetrySettings {
    /// Maximum number of attempts, the first included.
    pub attempts: u32,
    /// Wait before the second attempt; each later wait is twice as long. Jitter shortens a wait by up to half.
    pub first_pause: Duration,
    /// The longest wait.
    pub longest_pause: Duration,
    /// No attempt begins later than this after the first.
    pub total: Duration,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            attempts: 4,
            first_pause: Duration::from_millis(250),
            longest_pause: Duration::from_secs(4),
            total: Duration::from_secs(15),
        }
    }
}

/// Retries calls.
#[derive(Debug)]
pub(super) struct RetryLayer(RetrySettings);

impl RetryLayer {
    pub(super) fn new(settings: RetrySettings) -> Self {
        Self(settings)
    }

    /// How long to wait after the `nth` attempt.
    fn pause(&self, nth: u32, error: &ProviderError) -> Duration {
        let doubled = self.0.first_pause.saturating_mul(1 << (nth - 1).min(20));
        let pause = doubled.min(self.0.longest_pause);
        let jittered = pause.mul_f64(1.0 - fastrand::f64() / 2.0);
        // A provider that names a wait does not answer before.
        jittered.max(error.retry_after.unwrap_or_default())
    }
}

#[async_trait]
impl Layer for RetryLayer {
    async fn handle(&self, request: &Request<'_>) -> Result<Answer> {
        let started = Instant::now();
        let mut nth = 1;
        loop {
            let error = match request.send().await {
                // An inner layer rejects calls for longer than a caller, who may hold a claim, should wait.
                Err(error) if is_rejected_locally(&error) => return Err(error),
                Err(error) if error.retry == Retry::Later && may_repeat(request.verb()) => error,
                answer => return answer,
            };
            let pause = self.pause(nth, &error);
            if nth >= self.0.attempts || started.elapsed() + pause > self.0.total {
                return Err(error);
            }
            let (provider, verb) = (request.provider().to_owned(), request.verb().as_str());
            metrics::counter!("sandyard_provider_retries_total", "provider" => provider, "verb" => verb)
                .increment(1);
            tokio::time::sleep(pause).await;
            nth += 1;
        }
    }
}

/// Whether a second attempt does no harm and gets the same answer. `create` and `fork` could make two instances. After a lost
/// answer, a second attempt to create or remove a template would report that it exists or is missing. An archive can be read once.
fn may_repeat(verb: Verb) -> bool {
    !matches!(
        verb,
        Verb::Create | Verb::Fork | Verb::ImportTemplate | Verb::Snapshot | Verb::RemoveTemplate
    )
}
