//! How many requests a second one caller may make: a bucket of tokens each.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// Buckets kept; beyond that, full ones are forgotten, which changes nothing for their callers.
const MAX_BUCKETS: usize = 10_000;

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// What a caller has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// Requests in one go.
    limit: u64,
    /// Those that are left of them.
    remaining: u64,
    /// Seconds until there are as many as can be.
    reset_s: u64,
}

impl Allowance {
    /// Says so in an answer, in the words of the IETF's draft.
    pub(crate) fn tell(self, headers: &mut HeaderMap) {
        headers.insert(LIMIT, HeaderValue::from(self.limit));
        headers.insert(REMAINING, HeaderValue::from(self.remaining));
        headers.insert(RESET, HeaderValue::from(self.reset_s));
    }
}

/// One request too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany {
    /// What the caller has left: nothing.
    pub(crate) allowance: Allowance,
    /// In how many seconds there is a token again.
    pub(crate) retry_after_s: u64,
}

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

    /// Takes a token of `caller`'s, and says what is left; nothing where there is no limit.
    pub(crate) fn take(&self, caller: &str, now: Instant) -> Result<Option<Allowance>, TooMany> {
        if self.per_second == 0.0 {
            return Ok(None);
        }
        let most = self.per_second * 2.0;
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS {
            buckets.retain(|_, bucket| bucket.filled(self.per_second, most, now) < most);
        }
        if buckets.len() >= MAX_BUCKETS && !buckets.contains_key(caller) {
            return Err(TooMany {
                allowance: self.allowance(0.0),
                retry_after_s: 1,
            });
        }
        let bucket = buckets.entry(caller.to_owned()).or_insert(Bucket {
            tokens: most,
            filled_at: now,
        });
        bucket.tokens = bucket.filled(self.per_second, most, now);
        bucket.filled_at = now;
        if bucket.tokens < 1.0 {
            let wait_s = (1.0 - bucket.tokens) / self.per_second;
            return Err(TooMany {
                allowance: self.allowance(bucket.tokens),
                retry_after_s: wait_s.ceil().max(1.0) as u64,
            });
        }
        bucket.tokens -= 1.0;
        Ok(Some(self.allowance(bucket.tokens)))
    }

    fn allowance(&self, tokens: f64) -> Allowance {
        let most = self.per_second * 2.0;
        Allowance {
            limit: most as u64,
            remaining: tokens as u64,
            reset_s: ((most - tokens) / self.per_second).ceil() as u64,
        }
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
        let left = |taken: Result<Option<Allowance>, TooMany>| {
            taken
                .map(|allowance| allowance.unwrap().remaining)
                .map_err(|refusal| refusal.retry_after_s)
        };
        for remaining in (0..4).rev() {
            assert_eq!(left(limit.take("alice", start)), Ok(remaining));
        }
        assert_eq!(left(limit.take("alice", start)), Err(1));
        assert_eq!(left(limit.take("bob", start)), Ok(3));
        let later = start + Duration::from_millis(500);
        assert_eq!(left(limit.take("alice", later)), Ok(0));
    }

    #[test]
    fn an_answer_says_what_is_left() {
        let limit = RateLimit::new(5);
        let mut headers = HeaderMap::new();
        let allowance = limit.take("alice", Instant::now()).unwrap().unwrap();
        allowance.tell(&mut headers);
        assert_eq!(headers[LIMIT], "10");
        assert_eq!(headers[REMAINING], "9");
        assert_eq!(headers[RESET], "1");
    }

    #[test]
    fn zero_is_no_limit() {
        let limit = RateLimit::new(0);
        assert!((0..1000).all(|_| limit.take("alice", Instant::now()) == Ok(None)));
    }
}
