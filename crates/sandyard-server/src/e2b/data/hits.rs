//! Which sandboxes were found lately, and by what.
//!
//! Who was right a moment ago is right still, and is told so without a search: those who are wrong, however many they are,
//! hold up other strangers and nobody else.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::tokens::Known;

/// Most that are remembered.
const MOST: usize = 10_000;

/// Most of one sandbox: whoever has one can make as many signatures as they like, and must not crowd out others.
const MOST_OF_ONE: usize = 100;

/// Sandboxes found lately, by the hash of what they were found by.
#[derive(Debug, Default)]
pub(super) struct Hits(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    by_proof: HashMap<u64, Hit>,
    /// Counts uses: a clock that cannot be set back.
    uses: u64,
}

#[derive(Debug)]
struct Hit {
    known: Known,
    used: u64,
}

impl Hits {
    /// Gives the sandbox that something like this was found to be of. Whether this very thing is, is to be looked at: other
    /// things may have the same hash.
    pub(super) fn find(&self, proof: u64) -> Option<Known> {
        let mut kept = self.lock();
        kept.uses += 1;
        let used = kept.uses;
        let hit = kept.by_proof.get_mut(&proof)?;
        hit.used = used;
        Some(hit.known.clone())
    }

    /// Remembers what a sandbox was found by, in the place of what was not used for longest.
    pub(super) fn keep(&self, proof: u64, known: Known) {
        let mut kept = self.lock();
        let of_one = kept
            .by_proof
            .values()
            .filter(|hit| hit.known.id == known.id);
        let is_crowd = of_one.count() >= MOST_OF_ONE;
        if is_crowd || kept.by_proof.len() >= MOST {
            let others = kept.by_proof.iter();
            let others = others.filter(|(_, hit)| !is_crowd || hit.known.id == known.id);
            let oldest = others.min_by_key(|(_, hit)| hit.used);
            if let Some(oldest) = oldest.map(|(proof, _)| *proof) {
                kept.by_proof.remove(&oldest);
            }
        }
        kept.uses += 1;
        let used = kept.uses;
        kept.by_proof.insert(proof, Hit { known, used });
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(number: usize) -> Known {
        Known {
            id: format!("abcdefghijklmn{number:06}").parse().unwrap(),
            token: String::new(),
        }
    }

    #[test]
    fn one_sandbox_does_not_crowd_out_others() {
        let hits = Hits::default();
        hits.keep(u64::MAX, known(1));
        for number in 0..2 * MOST as u64 {
            hits.keep(number, known(2));
        }
        assert!(hits.find(u64::MAX).is_some());
        assert_eq!(hits.lock().by_proof.len(), 1 + MOST_OF_ONE);
        assert!(hits.find(0).is_none());
        assert!(hits.find(2 * MOST as u64 - 1).is_some());
    }

    #[test]
    fn what_is_used_stays() {
        let hits = Hits::default();
        for number in 0..MOST + 50 {
            hits.keep(number as u64, known(number));
            assert!(hits.find(0).is_some());
        }
        assert_eq!(hits.lock().by_proof.len(), MOST);
        assert!(hits.find(1).is_none());
    }
}
