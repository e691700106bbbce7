//! What instances used over the last hour: a point every five seconds, in memory, of those that run.
//!
//! ```text
//!  create, fork, start, resume ─▶ runs ──▶ a point at once, then with every tick ──▶ ring of an hour
//!  pause, stop, no processes   ─▶ rests    nothing is read
//!  delete                      ─▶ forgotten
//!  list                        ─▶ what other servers on this data directory have changed is learnt
//! ```
//!
//! Who reads them is the provider's: see [`Meter`].

mod points;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use sandyard_core::{Clock, SandboxState};
use sandyard_provider::{Instance, UsagePoint};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::MissedTickBehavior;

use points::{KEPT, Points};

/// How often a point is taken.
const EVERY: Duration = Duration::from_secs(5);

/// A point that is younger than this is not followed by another, so that the first two keep apart.
const YOUNG: Duration = Duration::from_millis(2500);

/// How long a deletion is remembered: longer than a list takes.
const REMEMBERED: Duration = Duration::from_secs(120);

/// What an instance has used so far, and uses now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Processor time used so far, in microseconds.
    pub(crate) cpu_usage_us: u64,
    /// Memory in bytes, without page cache.
    pub(crate) memory_bytes: u64,
    /// Page cache.
    pub(crate) cache_bytes: u64,
    /// Bytes written on top of the template.
    pub(crate) disk_bytes: u64,
}

/// What came of reading an instance's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// These.
    Counters(Counters),
    /// It has no processes any more.
    Gone,
    /// They could not be read this time.
    Failed,
}

/// Reads the counters of instances.
#[async_trait]
pub(crate) trait Meter: Send + 'static {
    /// Reads those of each, in the same order. `is_all`: these are all that run.
    async fn read(&mut self, ids: &[String], is_all: bool) -> Vec<Reading>;
}

/// The history of all instances of one provider, taken for as long as this lives.
#[derive(Debug)]
pub(crate) struct UsageHistory {
    shared: Arc<Shared>,
    task: AbortHandle,
}

#[derive(Debug)]
struct Shared {
    /// What packed times count from.
    epoch_ms: i64,
    known: Mutex<Known>,
    /// Something began to run.
    begun: Notify,
}

/// What is known of all instances.
#[derive(Debug, Default)]
struct Known {
    kept: HashMap<String, Kept>,
    /// Those deleted a moment ago: somebody who is just listing may have seen them still.
    deleted: HashMap<String, Instant>,
}

/// What is known of one instance.
#[derive(Debug)]
struct Kept {
    is_running: bool,
    cpu_millis: u32,
    /// When somebody last said whether it runs.
    noted: Instant,
    before: Option<Before>,
    points: Points,
}

/// The reading before the next one.
#[derive(Clone, Copy, Debug)]
struct Before {
    at: Instant,
    counters: Counters,
}

impl UsageHistory {
    /// Begins to take points.
    pub(crate) fn begin(meter: impl Meter) -> Self {
        let shared = Arc::new(Shared {
            epoch_ms: Clock::System.now_ms() - KEPT.as_millis() as i64,
            known: Mutex::default(),
            begun: Notify::new(),
        });
        let task = tokio::spawn(take_points(meter, shared.clone()));
        Self {
            shared,
            task: task.abort_handle(),
        }
    }

    /// Notes the state that a call has brought an instance into.
    pub(crate) fn note(&self, instance: &Instance) {
        self.shared.lock().note(instance);
        if instance.state == SandboxState::Running {
            self.shared.begun.notify_one();
        }
    }

    /// Notes all instances there are, as somebody who began to look at `since` has found them.
    pub(crate) fn note_all(&self, since: Instant, instances: &[Instance]) {
        let mut known = self.shared.lock();
        let there: HashSet<&str> = instances.iter().map(|one| one.id.as_str()).collect();
        let is_there = |id: &String| there.contains(id.as_str());
        known
            .kept
            .retain(|id, kept| kept.noted > since || is_there(id));
        known.deleted.retain(|_, at| at.elapsed() < REMEMBERED);
        for instance in instances {
            // What a call has said meanwhile is newer.
            let noted = known.kept.get(&instance.id).map(|kept| kept.noted);
            let newest = noted.or(known.deleted.get(&instance.id).copied());
            if newest.is_none_or(|at| at <= since) {
                known.note(instance);
            }
        }
        drop(known);
        self.shared.begun.notify_one();
    }

    /// Forgets an instance.
    pub(crate) fn forget(&self, id: &str) {
        let mut known = self.shared.lock();
        known.kept.remove(id);
        known.deleted.insert(id.to_owned(), Instant::now());
    }

    /// The points of an instance between two moments; none when it is not known.
    pub(crate) fn between(&self, id: &str, from_ms: i64, to_ms: i64) -> Option<Vec<UsagePoint>> {
        let known = self.shared.lock();
        let kept = known.kept.get(id)?;
        Some(kept.points.between(self.shared.epoch_ms, from_ms, to_ms))
    }
}

impl Drop for UsageHistory {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Known {
    fn note(&mut self, instance: &Instance) {
        let kept = self
            .kept
            .entry(instance.id.clone())
            .or_insert_with(|| Kept {
                is_running: false,
                cpu_millis: 0,
                noted: Instant::now(),
                before: None,
                points: Points::default(),
            });
        kept.is_running = instance.state == SandboxState::Running;
        kept.cpu_millis = instance.limits.cpu_millis;
        kept.noted = Instant::now();
        if !kept.is_running {
            // What was used before a rest says nothing of the seconds after it.
            kept.before = None;
        }
    }
}

async fn take_points(mut meter: impl Meter, shared: Arc<Shared>) {
    // Looking can wait until there is something to be seen.
    shared.begun.notified().await;
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let only_new = tokio::select! {
            _ = ticks.tick() => false,
            () = shared.begun.notified() => true,
        };
        let due = shared.due(only_new);
        if due.is_empty() && only_new {
            continue;
        }
        let read = meter.read(&due, !only_new).await;
        for (id, reading) in due.iter().zip(read) {
            shared.take(id, reading);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those whose next point is to be taken now.
    fn due(&self, only_new: bool) -> Vec<String> {
        let mut known = self.lock();
        let oldest_ms = Clock::System.now_ms() - KEPT.as_millis() as i64;
        let mut due = Vec::new();
        for (id, kept) in &mut known.kept {
            let is_due = match &kept.before {
                None => true,
                Some(before) => !only_new && before.at.elapsed() >= YOUNG,
            };
            if kept.is_running && is_due {
                due.push(id.clone());
            } else if !only_new {
                kept.points.forget_before(self.epoch_ms, oldest_ms);
            }
        }
        due
    }

    /// Adds what was read of an instance.
    fn take(&self, id: &str, reading: Reading) {
        let at = Instant::now();
        let mut known = self.lock();
        // It may have been paused, or deleted, since.
        let Some(kept) = known.kept.get_mut(id).filter(|kept| kept.is_running) else {
            return;
        };
        let counters = match reading {
            Reading::Counters(counters) => counters,
            Reading::Failed => return,
            Reading::Gone => {
                kept.is_running = false;
                kept.before = None;
                return;
            }
        };
        let before = kept.before;
        let used_us = before.map_or(0, |before| {
            let now = counters.cpu_usage_us;
            now.saturating_sub(before.counters.cpu_usage_us)
        });
        let elapsed = before.map_or(Duration::ZERO, |before| at - before.at);
        let point = UsagePoint {
            at_ms: Clock::System.now_ms(),
            cpu_percent: cpu_percent(used_us, elapsed, kept.cpu_millis),
            memory_bytes: counters.memory_bytes,
            cache_bytes: counters.cache_bytes,
            disk_bytes: counters.disk_bytes,
        };
        kept.points.push(self.epoch_ms, &point);
        kept.before = Some(Before { at, counters });
    }
}

/// Percent of what may be used.
fn cpu_percent(used_us: u64, elapsed: Duration, cpu_millis: u32) -> f32 {
    let may_use_us = elapsed.as_micros() as f64 * f64::from(cpu_millis) / 1000.0;
    if may_use_us <= 0.0 {
        return 0.0;
    }
    (used_us as f64 * 100.0 / may_use_us) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_percent_is_all_that_may_be_used() {
        let second = Duration::from_secs(1);
        assert_eq!(cpu_percent(1_000_000, second, 1000) as u32, 100);
        assert_eq!(cpu_percent(1_000_000, second, 2000) as u32, 50);
        assert_eq!(cpu_percent(250_000, second, 500) as u32, 50);
        assert_eq!(cpu_percent(1, Duration::ZERO, 1000) as u32, 0);
        assert_eq!(cpu_percent(1, second, 0) as u32, 0);
    }
}
