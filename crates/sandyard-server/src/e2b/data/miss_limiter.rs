//! How often a client may show a signature or token that no sandbox has: each search costs a hash per sandbox.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use sandyard_core::TokenBucket;

/// Misses per second of one address, and of all addresses together.
const RATE_PER_ADDRESS: f64 = 20.0;
const RATE_OF_ALL: f64 = 200.0;

/// Largest number of addresses that are counted. Beyond it, addresses without recent misses are dropped, which changes nothing
/// for them.
const MAX_ADDRESSES: usize = 10_000;

/// Limits misses.
#[derive(Debug)]
pub(super) struct MissLimiter(Mutex<Buckets>);

#[derive(Debug)]
struct Buckets {
    all: TokenBucket,
    by_address: HashMap<IpAddr, TokenBucket>,
}

/// A bucket that holds two seconds' worth of tokens.
fn bucket(rate: f64, now: Instant) -> TokenBucket {
    TokenBucket::new(rate, 2.0 * rate, now)
}

impl Default for MissLimiter {
    fn default() -> Self {
        Self(Mutex::new(Buckets {
            all: bucket(RATE_OF_ALL, Instant::now()),
            by_address: HashMap::new(),
        }))
    }
}

impl MissLimiter {
    /// Says whether an address may search once more.
    pub(super) fn may_search(&self, address: IpAddr, now: Instant) -> bool {
        let mut buckets = self.lock();
        let own = buckets.by_address.get_mut(&address);
        let has_own = own.is_none_or(|bucket| bucket.has_token(now));
        has_own && buckets.all.has_token(now)
    }

    /// Counts a miss.
    pub(super) fn count(&self, address: IpAddr, now: Instant) {
        self.charge(address, 1.0, now);
    }

    /// Takes a counted miss back: the sandbox was found after all.
    pub(super) fn uncount(&self, address: IpAddr, now: Instant) {
        self.charge(address, -1.0, now);
    }

    fn charge(&self, address: IpAddr, tokens: f64, now: Instant) {
        let mut buckets = self.lock();
        buckets.all.charge(tokens, now);
        if buckets.by_address.len() >= MAX_ADDRESSES {
            buckets.by_address.retain(|_, bucket| !bucket.is_full(now));
        }
        if buckets.by_address.len() >= MAX_ADDRESSES && !buckets.by_address.contains_key(&address) {
            // The limit of all addresses together applies.
            return;
        }
        buckets
            .by_address
            .entry(address)
            .or_insert_with(|| bucket(RATE_PER_ADDRESS, now))
            .charge(tokens, now);
    }

    fn lock(&self) -> MutexGuard<'_, Buckets> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    #[test]
    fn an_address_with_too_many_misses_waits_and_others_do_not() {
        let limiter = MissLimiter::default();
        let now = Instant::now();
        let mut count = 0;
        while limiter.may_search(address(1), now) {
            limiter.count(address(1), now);
            count += 1;
        }
        assert_eq!(count, 40);
        assert!(limiter.may_search(address(2), now));
        assert!(limiter.may_search(address(1), now + Duration::from_millis(100)));
    }

    #[test]
    fn misses_of_many_addresses_are_limited_together() {
        let limiter = MissLimiter::default();
        let now = Instant::now();
        let wrong = (0..20_000)
            .filter(|&number| {
                let may = limiter.may_search(address(number), now);
                if may {
                    limiter.count(address(number), now);
                }
                may
            })
            .count();
        assert_eq!(wrong, 400);
        assert!(limiter.lock().by_address.len() <= MAX_ADDRESSES);
    }

    #[test]
    fn a_miss_that_is_taken_back_costs_nothing() {
        let limiter = MissLimiter::default();
        let now = Instant::now();
        for _ in 0..1000 {
            assert!(limiter.may_search(address(1), now));
            limiter.count(address(1), now);
            limiter.uncount(address(1), now);
        }
    }
}
