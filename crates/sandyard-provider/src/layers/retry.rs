//! Tries again what may work later, where a second time does no harm.

use std::time::Duration;

use tokio::time::Instant;

use super::dice::Dice;
use super::layered::{Call, Layer, Work};
use super::never_asked::was_never_asked;
use crate::{ProviderError, Result, Retry, Verb};

/// How often, and for how long, a call is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetrySettings {
    /// Tries in all, the first included.
    pub tries: u32,
    /// The pause before the second; each later one is twice as long. Jitter takes away up to half of it.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// No other try begins when so much time has passed since the first.
    pub total: Duration,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            tries: 4,
            first_pause: Duration::from_millis(250),
            longest_pause: Duration::from_secs(4),
            total: Duration::from_secs(15),
        }
    }
}

/// Tries again.
#[derive(Debug)]
pub(super) struct Again {
    settings: RetrySettings,
    dice: Dice,
}

impl Again {
    pub(super) fn new(settings: RetrySettings) -> Self {
        Self {
            settings,
            dice: Dice::new(),
        }
    }

    /// How long to wait after the `nth` try.
    fn pause(&self, nth: u32, error: &ProviderError) -> Duration {
        let RetrySettings {
            first_pause,
            longest_pause,
            ..
        } = self.settings;
        let doubled = first_pause.saturating_mul(1 << (nth - 1).min(20));
        let pause = doubled
            .min(longest_pause)
            .mul_f64(1.0 - self.dice.roll() / 2.0);
        // Who says when to come again means not before.
        pause.max(error.retry_after.unwrap_or_default())
    }
}

impl Layer for Again {
    async fn around<T: Send>(&self, call: &Call<'_>, work: &Work<'_, T>) -> Result<T> {
        let began = Instant::now();
        let mut nth = 1;
        loop {
            let error = match work().await {
                // A layer inside refuses for longer than anybody should be kept waiting, who may hold something.
                Err(error) if was_never_asked(&error) => return Err(error),
                Err(error) if error.retry == Retry::Later && may_repeat(call.verb) => error,
                answer => return answer,
            };
            let pause = self.pause(nth, &error);
            if nth >= self.settings.tries || began.elapsed() + pause > self.settings.total {
                return Err(error);
            }
            let (provider, verb) = (call.provider.to_owned(), call.verb.as_str());
            metrics::counter!("provider_retries_total", "provider" => provider, "verb" => verb)
                .increment(1);
            tokio::time::sleep(pause).await;
            nth += 1;
        }
    }
}

/// Whether a second time does no harm and is answered like the first. `create` and `fork` could make two. A template that was
/// made or removed, but whose answer got lost, would be said to exist or to be missing. An archive comes in once.
fn may_repeat(verb: Verb) -> bool {
    !matches!(
        verb,
        Verb::Create | Verb::Fork | Verb::ImportTemplate | Verb::Snapshot | Verb::RemoveTemplate
    )
}
