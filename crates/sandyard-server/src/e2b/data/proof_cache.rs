//! Signatures and tokens that were found lately, with their sandboxes.
//!
//! A client that showed a valid one needs no search for the next request. So clients that show invalid ones, however many, only
//! delay other unknown clients.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::token_index::SandboxToken;

/// Largest number of proofs in the cache.
const MAX_PROOFS: usize = 10_000;

/// Largest number of one sandbox. Its owner can make any number of signatures, which must not displace those of others.
const MAX_PER_SANDBOX: usize = 100;

/// Sandboxes by the hash of the signature or token that was shown for them.
#[derive(Debug, Default)]
pub(super) struct ProofCache(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    by_proof: HashMap<u64, Entry>,
    /// Number of uses so far: a clock that cannot be set back.
    uses: u64,
}

#[derive(Debug)]
struct Entry {
    sandbox: SandboxToken,
    used: u64,
}

impl ProofCache {
    /// The sandbox of a proof with this hash. The caller checks the proof itself, since others may have the same hash.
    pub(super) fn find(&self, proof: u64) -> Option<SandboxToken> {
        let mut entries = self.lock();
        entries.uses += 1;
        let used = entries.uses;
        let entry = entries.by_proof.get_mut(&proof)?;
        entry.used = used;
        Some(entry.sandbox.clone())
    }

    /// Adds a proof. A full cache loses the one that was not used for longest, if need be of the same sandbox.
    pub(super) fn insert(&self, proof: u64, sandbox: SandboxToken) {
        let mut entries = self.lock();
        let is_same = |entry: &&Entry| entry.sandbox.id == sandbox.id;
        let is_at_limit = entries.by_proof.values().filter(is_same).count() >= MAX_PER_SANDBOX;
        if is_at_limit || entries.by_proof.len() >= MAX_PROOFS {
            let candidates = entries.by_proof.iter();
            let candidates = candidates.filter(|(_, entry)| !is_at_limit || is_same(entry));
            let oldest = candidates.min_by_key(|(_, entry)| entry.used);
            if let Some(oldest) = oldest.map(|(proof, _)| *proof) {
                entries.by_proof.remove(&oldest);
            }
        }
        entries.uses += 1;
        let used = entries.uses;
        entries.by_proof.insert(proof, Entry { sandbox, used });
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sandbox(number: usize) -> SandboxToken {
        SandboxToken {
            id: format!("abcdefghijklmn{number:06}").parse().unwrap(),
            token: String::new(),
        }
    }

    #[test]
    fn proofs_of_one_sandbox_do_not_displace_those_of_others() {
        let cache = ProofCache::default();
        cache.insert(u64::MAX, sandbox(1));
        for number in 0..2 * MAX_PROOFS as u64 {
            cache.insert(number, sandbox(2));
        }
        assert!(cache.find(u64::MAX).is_some());
        assert_eq!(cache.lock().by_proof.len(), 1 + MAX_PER_SANDBOX);
        assert!(cache.find(0).is_none());
        assert!(cache.find(2 * MAX_PROOFS as u64 - 1).is_some());
    }

    #[test]
    fn a_proof_in_use_stays_in_the_cache() {
        let cache = ProofCache::default();
        for number in 0..MAX_PROOFS + 50 {
            cache.insert(number as u64, sandbox(number));
            assert!(cache.find(0).is_some());
        }
        assert_eq!(cache.lock().by_proof.len(), MAX_PROOFS);
        assert!(cache.find(1).is_none());
    }
}
