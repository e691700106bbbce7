//! When a sandbox was last used, and whether it is in use.
//!
//! Kept in memory and written down in batches: a call must not wait for the database to note that it was made. What a
//! crash can lose is a second of it, and then a sandbox is paused a second early.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sandyard_core::{Clock, SandboxId};

/// The use of every sandbox this server has heard of lately.
#[derive(Clone, Debug)]
pub(crate) struct Activity {
    clock: Clock,
    uses: Arc<Mutex<HashMap<SandboxId, Use>>>,
}

#[derive(Debug, Default)]
struct Use {
    /// Calls, streams and connections under way.
    open: usize,
    last_ms: i64,
    /// Not written down yet.
    is_news: bool,
}

impl Activity {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            uses: Arc::default(),
        }
    }

    /// Marks a sandbox as in use for as long as the guard lives.
    pub(crate) fn begin(&self, id: &SandboxId) -> ActivityGuard {
        self.note(id, |open| open + 1);
        ActivityGuard {
            activity: self.clone(),
            id: id.clone(),
        }
    }

    fn note(&self, id: &SandboxId, open: impl FnOnce(usize) -> usize) {
        let now_ms = self.clock.now_ms();
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = uses.entry(id.clone()).or_default();
        entry.open = open(entry.open);
        entry.last_ms = entry.last_ms.max(now_ms);
        entry.is_news = true;
    }

    /// When it was last used, as far as this server knows; now, while it is in use.
    pub(crate) fn last_ms(&self, id: &SandboxId) -> Option<i64> {
        let uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = uses.get(id)?;
        Some(if entry.open > 0 {
            self.clock.now_ms()
        } else {
            entry.last_ms
        })
    }

    /// Brings uses that lie in the future, since the clock was set back, to now.
    pub(crate) fn rewind(&self, now_ms: i64) {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in uses.values_mut() {
            entry.last_ms = entry.last_ms.min(now_ms);
        }
    }

    /// What is to be written down: every sandbox used since the last time, and those in use.
    pub(crate) fn take_news(&self) -> Vec<(SandboxId, i64)> {
        let now_ms = self.clock.now_ms();
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        let mut news = Vec::new();
        uses.retain(|id, entry| {
            if entry.open > 0 {
                entry.last_ms = now_ms;
            }
            if entry.open > 0 || entry.is_news {
                news.push((id.clone(), entry.last_ms));
                entry.is_news = false;
                return true;
            }
            // Written down in an earlier round and quiet since: the store knows all there is to know.
            false
        });
        news
    }

    /// Puts back what could not be written down.
    pub(crate) fn return_news(&self, news: &[(SandboxId, i64)]) {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, last_ms) in news {
            let entry = uses.entry(id.clone()).or_default();
            entry.last_ms = entry.last_ms.max(*last_ms);
            entry.is_news = true;
        }
    }
}

/// Says that a sandbox is in use; its end is the last moment of use.
#[derive(Debug)]
pub(crate) struct ActivityGuard {
    activity: Activity,
    id: SandboxId,
}

impl Drop for ActivityGuard {
    fn drop(&mut self) {
        self.activity.note(&self.id, |open| open.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> SandboxId {
        "abc".parse().unwrap()
    }

    #[test]
    fn what_is_in_use_was_used_now() {
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
    fn news_is_told_until_it_is_written_down() {
        let activity = Activity::new(Clock::manual(7));
        drop(activity.begin(&id()));
        let news = activity.take_news();
        assert_eq!(news, [(id(), 7)]);
        activity.return_news(&news);
        assert_eq!(activity.take_news(), [(id(), 7)]);
        assert_eq!(activity.take_news(), []);
        assert_eq!(activity.last_ms(&id()), None, "the store knows it now");
    }
}
