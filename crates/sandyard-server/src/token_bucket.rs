//! A token bucket: tokens come back at a steady rate, up to twice as many as come back in a second.

use std::time::Instant;

/// How many seconds' worth of tokens a full bucket holds.
const BURST_SECONDS: f64 = 2.0;

/// A bucket that starts full. Its owner knows the rate, in tokens per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenBucket {
    tokens: f64,
    filled_at: Instant,
}

impl TokenBucket {
    pub(crate) fn full(rate: f64, now: Instant) -> Self {
        Self {
            tokens: Self::capacity(rate),
            filled_at: now,
        }
    }

    /// Tokens in a full bucket.
    pub(crate) fn capacity(rate: f64) -> f64 {
        BURST_SECONDS * rate
    }

    /// Adds the tokens that have come back, and returns how many there are.
    pub(crate) fn refill(&mut self, rate: f64, now: Instant) -> f64 {
        let elapsed = now.saturating_duration_since(self.filled_at).as_secs_f64();
        self.tokens = (self.tokens + elapsed * rate).min(Self::capacity(rate));
        self.filled_at = now;
        self.tokens
    }

    /// Adds tokens, or takes them if `amount` is negative.
    pub(crate) fn change(&mut self, amount: f64) {
        self.tokens += amount;
    }

    /// Says whether no token is missing. The bucket of a caller who has not used it lately can be forgotten.
    pub(crate) fn is_full(&mut self, rate: f64, now: Instant) -> bool {
        self.refill(rate, now) >= Self::capacity(rate)
    }
}
