//! How often a stranger may be wrong about a signature: looking for its sandbox costs a hash for every one there is.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Misses a second of one address, and of all together; twice as many in one go.
const PER_ADDRESS: f64 = 20.0;
const OF_ALL: f64 = 200.0;

/// Addresses remembered; beyond that, those that have been quiet are forgotten, which changes nothing for them.
const MAX_ADDRESSES: usize = 10_000;

/// Counts misses.
#[derive(Debug)]
pub(super) struct Misses(Mutex<Counts>);

#[derive(Debug)]
struct Counts {
    all: Bucket,
    by_address: HashMap<IpAddr, Bucket>,
}

/// What is left of the misses somebody may make.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    filled_at: Instant,
}

impl Default for Misses {
    fn default() -> Self {
        Self(Mutex::new(Counts {
            all: Bucket::new(OF_ALL, Instant::now()),
            by_address: HashMap::new(),
        }))
    }
}

impl Misses {
    /// Says whether somebody may be wrong once more.
    pub(super) fn may_try(&self, address: IpAddr, now: Instant) -> bool {
        let mut counts = self.lock();
        let own = counts.by_address.get_mut(&address);
        let has_own = own.is_none_or(|bucket| bucket.fill(PER_ADDRESS, now) >= 1.0);
        has_own && counts.all.fill(OF_ALL, now) >= 1.0
    }

    /// Notes that somebody was wrong.
    pub(super) fn note(&self, address: IpAddr, now: Instant) {
        self.change(address, -1.0, now);
    }

    /// Takes that back: it was only too early to know.
    pub(super) fn forgive(&self, address: IpAddr, now: Instant) {
        self.change(address, 1.0, now);
    }

    fn change(&self, address: IpAddr, by: f64, now: Instant) {
        let mut counts = self.lock();
        counts.all.fill(OF_ALL, now);
        counts.all.left += by;
        if counts.by_address.len() >= MAX_ADDRESSES {
            counts
                .by_address
                .retain(|_, bucket| bucket.fill(PER_ADDRESS, now) < 2.0 * PER_ADDRESS);
        }
        if counts.by_address.len() >= MAX_ADDRESSES && !counts.by_address.contains_key(&address) {
            // The count of all is what holds so many strangers back.
            return;
        }
        let bucket = counts
            .by_address
            .entry(address)
            .or_insert_with(|| Bucket::new(PER_ADDRESS, now));
        bucket.fill(PER_ADDRESS, now);
        bucket.left += by;
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bucket {
    fn new(per_second: f64, now: Instant) -> Self {
        Self {
            left: 2.0 * per_second,
            filled_at: now,
        }
    }

    fn fill(&mut self, per_second: f64, now: Instant) -> f64 {
        let since = now.saturating_duration_since(self.filled_at).as_secs_f64();
        self.left = (self.left + since * per_second).min(2.0 * per_second);
        self.filled_at = now;
        self.left
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
    fn who_is_wrong_too_often_waits_and_others_do_not() {
        let misses = Misses::default();
        let now = Instant::now();
        let mut count = 0;
        while misses.may_try(address(1), now) {
            misses.note(address(1), now);
            count += 1;
        }
        assert_eq!(count, 40);
        assert!(misses.may_try(address(2), now));
        assert!(misses.may_try(address(1), now + Duration::from_millis(100)));
    }

    #[test]
    fn many_strangers_together_are_held_back_too() {
        let misses = Misses::default();
        let now = Instant::now();
        let wrong = (0..20_000)
            .filter(|&number| {
                let may = misses.may_try(address(number), now);
                if may {
                    misses.note(address(number), now);
                }
                may
            })
            .count();
        assert_eq!(wrong, 400);
        assert!(misses.lock().by_address.len() <= MAX_ADDRESSES);
    }

    #[test]
    fn what_was_right_after_all_costs_nothing() {
        let misses = Misses::default();
        let now = Instant::now();
        for _ in 0..1000 {
            assert!(misses.may_try(address(1), now));
            misses.note(address(1), now);
            misses.forgive(address(1), now);
        }
    }
}
