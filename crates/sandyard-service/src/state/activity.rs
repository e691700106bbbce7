//! When each sandbox was last used, and whether it is in use now.
//!
//! The times are in memory and saved in batches, so that no call waits for the database to record its own activity. A crash loses at
//! most a second of activity; then a sandbox is paused a second early.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use sandyard_core::{Clock, SandboxId};

/// The activity of every sandbox that this server has used lately.
#[derive(Clone, Debug)]
pub(crate) struct Activity {
    clock: Clock,
    uses: Arc<Mutex<HashMap<SandboxId, Use>>>,
}

#[derive(Debug, Default)]
struct Use {
    /// Number of calls, streams and connections in progress.
    open: usize,
    last_ms: i64,
    /// Whether the store does not have it yet.
    is_unsaved: bool,
}

impl Activity {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            uses: Arc::default(),
        }
    }

    /// Marks a sandbox as in use until the guard is dropped.
    pub(crate) fn begin(&self, id: &SandboxId) -> ActivityGuard {
        self.record(id, |open| open + 1);
        ActivityGuard {
            activity: self.clone(),
            id: id.clone(),
        }
    }

    fn record(&self, id: &SandboxId, open: impl FnOnce(usize) -> usize) {
        let now_ms = self.clock.now_ms();
        let mut uses = self.uses.lock();
        let entry = uses.entry(id.clone()).or_default();
        entry.open = open(entry.open);
        entry.last_ms = entry.last_ms.max(now_ms);
        entry.is_unsaved = true;
    }

    /// When a sandbox was last used, as far as this server knows; now, if it is in use.
    pub(crate) fn last_ms(&self, id: &SandboxId) -> Option<i64> {
        let uses = self.uses.lock();
        let entry = uses.get(id)?;
        Some(if entry.open > 0 {
            self.clock.now_ms()
        } else {
            entry.last_ms
        })
    }

    /// Sets activity that lies in the future, because the clock was set back, to now.
    pub(crate) fn rewind(&self, now_ms: i64) {
        let mut uses = self.uses.lock();
        for entry in uses.values_mut() {
            entry.last_ms = entry.last_ms.min(now_ms);
        }
    }

    /// Takes what has to be saved: every sandbox used since the last call, and those in use.
    pub(crate) fn take_unsaved(&self) -> Vec<(SandboxId, i64)> {
        let now_ms = self.clock.now_ms();
        let mut uses = self.uses.lock();
        let mut unsaved = Vec::new();
        uses.retain(|id, entry| {
            if entry.open > 0 {
                entry.last_ms = now_ms;
            }
            if entry.open > 0 || entry.is_unsaved {
                unsaved.push((id.clone(), entry.last_ms));
                entry.is_unsaved = false;
                return true;
            }
            // Saved in an earlier pass and not used since: the store has everything.
            false
        });
        unsaved
    }

    /// Puts back what could not be saved.
    pub(crate) fn restore_unsaved(&self, unsaved: &[(SandboxId, i64)]) {
        let mut uses = self.uses.lock();
        for (id, last_ms) in unsaved {
            let entry = uses.entry(id.clone()).or_default();
            entry.last_ms = entry.last_ms.max(*last_ms);
            entry.is_unsaved = true;
        }
    }
}

/// Marks a sandbox as in use. Dropping it ends the use.
#[derive(Debug)]
pub(crate) struct ActivityGuard {
    activity: Activity,
    id: SandboxId,
}

impl Drop for ActivityGuard {
    fn drop(&mut self) {
        self.activity
            .record(&self.id, |open| open.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> SandboxId {
        "abc".parse().unwrap()
    }

    #[test]
    fn a_sandbox_in_use_was_last_used_now() {
        let clock = Clock::manual(1000);
        let activity = Activity::new(clock.clone());
        let guard = activity.begin(&id());
        clock.advance_ms(500);
        assert_eq!(activity.last_ms(&id()), Some(1500));
        drop(guard);
        clock.advance_ms(500);
        assert_eq!(activity.last_ms(&id()), Some(1500));
    }

    #[test]
    fn activity_is_returned_until_it_is_saved() {
        let activity = Activity::new(Clock::manual(7));
        drop(activity.begin(&id()));
        let unsaved = activity.take_unsaved();
        assert_eq!(unsaved, [(id(), 7)]);
        activity.restore_unsaved(&unsaved);
        assert_eq!(activity.take_unsaved(), [(id(), 7)]);
        assert_eq!(activity.take_unsaved(), []);
        assert_eq!(activity.last_ms(&id()), None, "the store has it now");
    }
}
