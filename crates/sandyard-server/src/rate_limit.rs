//! How many requests per second one caller may make: a token bucket each.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use sandyard_core::TokenBucket;

/// Largest number of buckets. Beyond it, full ones are dropped, which changes nothing for their callers.
const MAX_BUCKETS: usize = 10_000;

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// The requests that a caller may still make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// Requests that may be made at once.
    limit: u64,
    /// Requests that are left of them.
    remaining: u64,
    /// Seconds until the bucket is full.
    reset_s: u64,
}

impl Allowance {
    /// Adds the headers of the IETF's draft to a response.
    pub(crate) fn write(self, headers: &mut HeaderMap) {
        headers.insert(LIMIT, HeaderValue::from(self.limit));
        headers.insert(REMAINING, HeaderValue::from(self.remaining));
        headers.insert(RESET, HeaderValue::from(self.reset_s));
    }
}

/// The refusal of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany {
    /// What the caller may still do: nothing.
    pub(crate) allowance: Allowance,
    /// Seconds until the next request may be made.
    pub(crate) retry_after_s: u64,
}

/// The buckets of all callers.
#[derive(Debug)]
pub(crate) struct RateLimit {
    per_second: f64,
    buckets: Mutex<HashMap<String, TokenBucket>>,
}

impl RateLimit {
    /// `per_second` requests per second, twice as many at once; 0: no limit.
    pub(crate) fn new(per_second: u32) -> Self {
        Self {
            per_second: per_second.into(),
            buckets: Mutex::default(),
        }
    }

    /// Takes a token of a caller and returns what is left; none if there is no limit.
    pub(crate) fn take(&self, caller: &str, now: Instant) -> Result<Option<Allowance>, TooMany> {
        if self.per_second == 0.0 {
            return Ok(None);
        }
        let capacity = self.per_second * 2.0;
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS {
            buckets.retain(|_, bucket| !bucket.is_full(now));
        }
        if buckets.len() >= MAX_BUCKETS && !buckets.contains_key(caller) {
            return Err(TooMany {
                allowance: self.allowance(0.0),
                retry_after_s: 1,
            });
        }
        let bucket = buckets
            .entry(caller.to_owned())
            .or_insert_with(|| TokenBucket::new(self.per_second, capacity, now));
        if !bucket.try_take(now) {
            let wait_s = bucket.time_until(1.0, now).as_secs_f64();
            return Err(TooMany {
                allowance: self.allowance(bucket.tokens(now)),
                retry_after_s: wait_s.ceil().max(1.0) as u64,
            });
        }
        Ok(Some(self.allowance(bucket.tokens(now))))
    }

    fn allowance(&self, tokens: f64) -> Allowance {
        let capacity = self.per_second * 2.0;
        Allowance {
            limit: capacity as u64,
            remaining: tokens as u64,
            reset_s: ((capacity - tokens) / self.per_second).ceil() as u64,
        }
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
        let remaining_after = |outcome: Result<Option<Allowance>, TooMany>| {
            outcome
                .map(|allowance| allowance.unwrap().remaining)
                .map_err(|refusal| refusal.retry_after_s)
        };
        for remaining in (0..4).rev() {
            assert_eq!(remaining_after(limit.take("alice", start)), Ok(remaining));
        }
        assert_eq!(remaining_after(limit.take("alice", start)), Err(1));
        assert_eq!(remaining_after(limit.take("bob", start)), Ok(3));
        let later = start + Duration::from_millis(500);
        assert_eq!(remaining_after(limit.take("alice", later)), Ok(0));
    }

    #[test]
    fn a_response_has_headers_with_what_is_left() {
        let limit = RateLimit::new(5);
        let mut headers = HeaderMap::new();
        let allowance = limit.take("alice", Instant::now()).unwrap().unwrap();
        allowance.write(&mut headers);
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
