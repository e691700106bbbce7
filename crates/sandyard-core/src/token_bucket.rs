//! A token bucket: how often something may happen, with a burst.

use std::time::{Duration, Instant};

/// Tokens that refill at a constant rate, up to a capacity. The caller passes the time in, so that tests control it.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    per_second: f64,
    capacity: f64,
    tokens: f64,
    filled_at: Instant,
}

impl TokenBucket {
    /// A full bucket that gains `per_second` tokens a second and holds at most `capacity`.
    pub fn new(per_second: f64, capacity: f64, now: Instant) -> Self {
        Self {
            per_second,
            capacity,
            tokens: capacity,
            filled_at: now,
        }
    }

    /// Refills the bucket and returns its tokens. They are negative after a [`Self::charge`] beyond what was there.
    pub fn tokens(&mut self, now: Instant) -> f64 {
        let elapsed = now.saturating_duration_since(self.filled_at).as_secs_f64();
        self.tokens = (self.tokens + elapsed * self.per_second).min(self.capacity);
        self.filled_at = self.filled_at.max(now);
        self.tokens
    }

    /// Says whether a whole token is there.
    pub fn has_token(&mut self, now: Instant) -> bool {
        self.tokens(now) >= 1.0
    }

    /// Takes a token if there is one.
    pub fn try_take(&mut self, now: Instant) -> bool {
        let is_taken = self.has_token(now);
        if is_taken {
            self.tokens -= 1.0;
        }
        is_taken
    }

    /// Takes tokens for what has happened already, even if there are not enough. A negative number gives tokens back.
    pub fn charge(&mut self, tokens: f64, now: Instant) {
        self.tokens(now);
        self.tokens = (self.tokens - tokens).min(self.capacity);
    }

    /// How long until the bucket holds `tokens`; zero if it does.
    pub fn time_until(&mut self, tokens: f64, now: Instant) -> Duration {
        let missing = tokens - self.tokens(now);
        Duration::from_secs_f64((missing / self.per_second).max(0.0))
    }

    /// Says whether the bucket is full, so that forgetting it changes nothing.
    pub fn is_full(&mut self, now: Instant) -> bool {
        self.tokens(now) >= self.capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_what_it_holds_and_refills() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(2.0, 3.0, start);
        let mut taken = |now| (0..5).filter(|_| bucket.try_take(now)).count();
        assert_eq!(taken(start), 3);
        assert_eq!(taken(start + Duration::from_secs(1)), 2);
        assert_eq!(taken(start + Duration::from_secs(61)), 3);
    }

    #[test]
    fn a_charge_beyond_the_tokens_has_to_be_waited_for() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(1000.0, 1000.0, start);
        bucket.charge(1500.0, start);
        let wait = bucket.time_until(0.0, start);
        assert_eq!(wait, Duration::from_millis(500));
        assert!(!bucket.has_token(start + wait));
        assert_eq!(bucket.time_until(0.0, start + wait), Duration::ZERO);
    }

    #[test]
    fn tokens_given_back_never_exceed_the_capacity() {
        let now = Instant::now();
        let mut bucket = TokenBucket::new(1.0, 2.0, now);
        assert!(bucket.is_full(now));
        bucket.charge(1.0, now);
        assert!(!bucket.is_full(now));
        bucket.charge(-5.0, now);
        assert_eq!(bucket.tokens(now), 2.0);
    }
}
