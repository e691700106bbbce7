//! Usage of instances over the last hour: one point every five seconds, in memory, of running instances.
//!
//! ```text
//!  create, fork, start, resume ─▶ runs ──▶ a point at once, then with every tick ──▶ ring of an hour
//!  pause, stop, no processes   ─▶ rests    nothing is read
//!  delete                      ─▶ forgotten
//!  list                        ─▶ what other servers on this data directory have changed is learnt
//! ```
//!
//! The provider reads the counters: see [`Meter`].

mod points;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::Mutex;
use sandyard_core::{Clock, SandboxState};
use sandyard_provider::{Instance, UsagePoint};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::MissedTickBehavior;

use points::{Points, RETENTION};

/// Interval between points.
const INTERVAL: Duration = Duration::from_secs(5);

/// A newer point than this is not followed by another, so that the first two points of an instance are not too close.
const MIN_AGE: Duration = Duration::from_millis(2500);

/// How long a deletion is remembered: longer than a list takes.
const DELETION_MEMORY: Duration = Duration::from_secs(120);

/// Current usage of an instance and its processor time so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Processor time used so far, in microseconds.
    pub(crate) cpu_usage_us: u64,
    /// Memory in bytes, without page cache.
    pub(crate) memory_bytes: u64,
    /// Page cache in bytes.
    pub(crate) cache_bytes: u64,
    /// Bytes written on top of the template.
    pub(crate) disk_bytes: u64,
}

/// Result of reading an instance's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// The counters.
    Counters(Counters),
    /// It has no processes any more.
    Exited,
    /// The counters could not be read this time.
    Failed,
}

/// Reads the counters of instances.
#[async_trait]
pub(crate) trait Meter: Send + 'static {
    /// Reads the counters of each instance, in the same order. `is_all`: these are all running instances.
    async fn read(&mut self, ids: &[String], is_all: bool) -> Vec<Reading>;
}

/// The history of all instances of one provider. Recording ends when it is dropped.
#[derive(Debug)]
pub(crate) struct UsageHistory {
    shared: Arc<Shared>,
    task: AbortHandle,
}

#[derive(Debug)]
struct Shared {
    /// Start of the packed times.
    epoch_ms: i64,
    histories: Mutex<Histories>,
    /// An instance started to run.
    started: Notify,
}

/// The histories of all instances.
#[derive(Debug, Default)]
struct Histories {
    entry: HashMap<String, History>,
    /// Recent deletions: a list in progress may still contain the instance.
    deleted: HashMap<String, Instant>,
}

/// The history of one instance.
#[derive(Debug)]
struct History {
    is_running: bool,
    cpu_millis: u32,
    /// When its state was last reported.
    observed_at: Instant,
    before: Option<Before>,
    points: Points,
}

/// The previous reading.
#[derive(Clone, Copy, Debug)]
struct Before {
    at: Instant,
    counters: Counters,
}

impl UsageHistory {
    /// Starts to record points.
    pub(crate) fn begin(meter: impl Meter) -> Self {
        let shared = Arc::new(Shared {
            epoch_ms: Clock::System.now_ms() - RETENTION.as_millis() as i64,
            histories: Mutex::default(),
            started: Notify::new(),
        });
        let task = tokio::spawn(take_points(meter, shared.clone()));
        Self {
            shared,
            task: task.abort_handle(),
        }
    }

    /// Records the state of an instance after a call.
    pub(crate) fn record(&self, instance: &Instance) {
        self.shared.histories.lock().record(instance);
        if instance.state == SandboxState::Running {
            self.shared.started.notify_one();
        }
    }

    /// Records the instances of a list that was requested at `since`.
    pub(crate) fn record_all(&self, since: Instant, instances: &[Instance]) {
        let mut histories = self.shared.histories.lock();
        let listed: HashSet<&str> = instances.iter().map(|one| one.id.as_str()).collect();
        let is_listed = |id: &String| listed.contains(id.as_str());
        histories
            .entry
            .retain(|id, entry| entry.observed_at > since || is_listed(id));
        histories
            .deleted
            .retain(|_, at| at.elapsed() < DELETION_MEMORY);
        for instance in instances {
            // A call may have reported a newer state since then.
            let observed_at = histories
                .entry
                .get(&instance.id)
                .map(|entry| entry.observed_at);
            let newest = observed_at.or(histories.deleted.get(&instance.id).copied());
            if newest.is_none_or(|at| at <= since) {
                histories.record(instance);
            }
        }
        drop(histories);
        self.shared.started.notify_one();
    }

    /// Forgets an instance.
    pub(crate) fn forget(&self, id: &str) {
        let mut histories = self.shared.histories.lock();
        histories.entry.remove(id);
        histories.deleted.insert(id.to_owned(), Instant::now());
    }

    /// The points of an instance between two times; `None` for an unknown instance.
    pub(crate) fn between(&self, id: &str, from_ms: i64, to_ms: i64) -> Option<Vec<UsagePoint>> {
        let histories = self.shared.histories.lock();
        let entry = histories.entry.get(id)?;
        Some(entry.points.between(self.shared.epoch_ms, from_ms, to_ms))
    }
}

impl Drop for UsageHistory {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Histories {
    fn record(&mut self, instance: &Instance) {
        let entry = self
            .entry
            .entry(instance.id.clone())
            .or_insert_with(|| History {
                is_running: false,
                cpu_millis: 0,
                observed_at: Instant::now(),
                before: None,
                points: Points::default(),
            });
        entry.is_running = instance.state == SandboxState::Running;
        entry.cpu_millis = instance.limits.cpu_millis;
        entry.observed_at = Instant::now();
        if !entry.is_running {
            // The usage before a pause says nothing about the seconds after it.
            entry.before = None;
        }
    }
}

async fn take_points(mut meter: impl Meter, shared: Arc<Shared>) {
    // Nothing needs to be read before the first instance runs.
    shared.started.notified().await;
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let only_new = tokio::select! {
            _ = ticks.tick() => false,
            () = shared.started.notified() => true,
        };
        let due = shared.due(only_new);
        if due.is_empty() && only_new {
            continue;
        }
        let read = meter.read(&due, !only_new).await;
        for (id, reading) in due.iter().zip(read) {
            shared.add_reading(id, reading);
        }
    }
}

impl Shared {
    /// Ids of the instances whose next point is due.
    fn due(&self, only_new: bool) -> Vec<String> {
        let mut histories = self.histories.lock();
        let oldest_ms = Clock::System.now_ms() - RETENTION.as_millis() as i64;
        let mut due = Vec::new();
        for (id, entry) in &mut histories.entry {
            let is_due = match &entry.before {
                None => true,
                Some(before) => !only_new && before.at.elapsed() >= MIN_AGE,
            };
            if entry.is_running && is_due {
                due.push(id.clone());
            } else if !only_new {
                entry.points.forget_before(self.epoch_ms, oldest_ms);
            }
        }
        due
    }

    /// Adds a reading of an instance.
    fn add_reading(&self, id: &str, reading: Reading) {
        let at = Instant::now();
        let mut histories = self.histories.lock();
        // It may have been paused or deleted meanwhile.
        let Some(entry) = histories.entry.get_mut(id).filter(|entry| entry.is_running) else {
            return;
        };
        let counters = match reading {
            Reading::Counters(counters) => counters,
            Reading::Failed => return,
            Reading::Exited => {
                entry.is_running = false;
                entry.before = None;
                return;
            }
        };
        let before = entry.before;
        let used_us = before.map_or(0, |before| {
            let now = counters.cpu_usage_us;
            now.saturating_sub(before.counters.cpu_usage_us)
        });
        let elapsed = before.map_or(Duration::ZERO, |before| at - before.at);
        let point = UsagePoint {
            at_ms: Clock::System.now_ms(),
            cpu_percent: cpu_percent(used_us, elapsed, entry.cpu_millis),
            memory_bytes: counters.memory_bytes,
            cache_bytes: counters.cache_bytes,
            disk_bytes: counters.disk_bytes,
        };
        entry.points.push(self.epoch_ms, &point);
        entry.before = Some(Before { at, counters });
    }
}

/// Processor time as a percentage of the limit.
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
    fn a_hundred_percent_is_the_limit() {
        let second = Duration::from_secs(1);
        assert_eq!(cpu_percent(1_000_000, second, 1000) as u32, 100);
        assert_eq!(cpu_percent(1_000_000, second, 2000) as u32, 50);
        assert_eq!(cpu_percent(250_000, second, 500) as u32, 50);
        assert_eq!(cpu_percent(1, Duration::ZERO, 1000) as u32, 0);
        assert_eq!(cpu_percent(1, second, 0) as u32, 0);
    }
}
