//! How many requests a second one caller may make: a bucket of tokens each.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Buckets kept; beyond that, full ones are forgotten, which changes nothing for their callers.
const MAX_BUCKETS: usize = 10_000;

/// The buckets of all callers.
#[derive(Debug)]
pub(crate) struct RateLimit {
    per_second: f64,
    buckets: Mutex<HashMap<String, Bucket>>,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    filled_at: Instant,
}

impl RateLimit {
    /// `per_second` requests a second, twice as many in one go; 0: any number.
    pub(crate) fn new(per_second: u32) -> Self {
        Self {
            per_second: per_second.into(),
            buckets: Mutex::default(),
        }
    }

    /// Takes a token of `caller`'s; else says in how many seconds there is one.
    pub(crate) fn take(&self, caller: &str, now: Instant) -> Result<(), u64> {
        if self.per_second == 0.0 {
            return Ok(());
        }
        let most = self.per_second * 2.0;
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS {
            buckets.retain(|_, bucket| bucket.filled(self.per_second, most, now) < most);
        }
        if buckets.len() >= MAX_BUCKETS && !buckets.contains_key(caller) {
            return Err(1);
        }
        let bucket = buckets.entry(caller.to_owned()).or_insert(Bucket {
            tokens: most,
            filled_at: now,
        });
        bucket.tokens = bucket.filled(self.per_second, most, now);
        bucket.filled_at = now;
        if bucket.tokens < 1.0 {
            return Err(((1.0 - bucket.tokens) / self.per_second).ceil().max(1.0) as u64);
        }
        bucket.tokens -= 1.0;
        Ok(())
    }
}

impl Bucket {
    fn filled(&self, per_second: f64, most: f64, now: Instant) -> f64 {
        let since = now.saturating_duration_since(self.filled_at).as_secs_f64();
        (self.tokens + since * per_second).min(most)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_caller_beyond_its_rate_waits_and_others_do_not() {
        let limit = RateLimit::new(2);
        let start = Instant::now();
        for _ in 0..4 {
            assert_eq!(limit.take("alice", start), Ok(()));
        }
        assert_eq!(limit.take("alice", start), Err(1));
        assert_eq!(limit.take("bob", start), Ok(()));
        assert_eq!(
            limit.take("alice", start + Duration::from_millis(500)),
            Ok(())
        );
    }

    #[test]
    fn zero_is_no_limit() {
        let limit = RateLimit::new(0);
        assert!((0..1000).all(|_| limit.take("alice", Instant::now()).is_ok()));
    }
}
