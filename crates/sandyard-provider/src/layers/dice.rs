//! Numbers that look random: the same for the same seed. Never for secrets.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// A source of such numbers. Any number of threads may draw; the order of draws decides who gets which.
#[derive(Debug)]
pub(super) struct Dice(AtomicU64);

impl Dice {
    /// The same numbers for the same seed.
    pub(super) fn seeded(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// Other numbers every time.
    pub(super) fn new() -> Self {
        Self::seeded(RandomState::new().hash_one(0))
    }

    /// From zero up to, but not including, one.
    pub(super) fn roll(&self) -> f64 {
        // Splitmix64: a counter, well stirred.
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let count = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        let stirred = (count ^ (count >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let stirred = (stirred ^ (stirred >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let number = stirred ^ (stirred >> 31);
        // 53 bits are what a double holds.
        (number >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_they_are_spread() {
        let (one, two) = (Dice::seeded(7), Dice::seeded(7));
        let rolled: Vec<f64> = (0..1000).map(|_| one.roll()).collect();
        assert!(rolled.iter().all(|number| *number == two.roll()));
        assert!(rolled.iter().all(|number| (0.0..1.0).contains(number)));
        let low = rolled.iter().filter(|number| **number < 0.5).count();
        assert!((400..600).contains(&low), "{low}");
    }
}
