//! The queue of timers.
//!
//! - `index`: the index in Redis
//! - here: claiming due timers, from the index's candidates or from the database, and waiting

mod index;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sandyard_core::Clock;
use sandyard_core::clock::millis;
use tokio::sync::Notify;

use self::index::{Correction, Due, Index};
use crate::error::Result;
use crate::model::Timer;
use crate::store::Store;
use crate::timer_rows::TimerEntry;

/// Longest pause between two queries if other servers may set timers.
const SHARED_PAUSE: Duration = Duration::from_secs(1);
/// The same if a test moves the clock.
const MANUAL_PAUSE: Duration = Duration::from_millis(10);
/// Pause after a failure, so that a broken database is not queried all the time.
const FAILURE_PAUSE: Duration = Duration::from_millis(250);

/// The queue over the table of timers.
///
/// With Redis, servers find due timers in its index instead of querying the database. Claims are always in the database, so a timer
/// fires once whatever Redis returns or loses.
#[derive(Clone)]
pub struct Timers {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    clock: Clock,
    index: Option<Index>,
    announced: Notify,
    has_failed: AtomicBool,
}

impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers")
            .field("kind", &self.kind())
            .field("store", &self.inner.store)
            .finish_non_exhaustive()
    }
}

impl Timers {
    /// The queue of `store`, with Redis if a URL is given. An unreachable Redis is not an error: the database is queried until it is back.
    pub async fn open(store: Store, redis_url: Option<&str>, clock: Clock) -> Result<Self> {
        let index = match redis_url {
            Some(url) => Some(Index::open(url, &store).await?),
            None => None,
        };
        Ok(Self {
            inner: Arc::new(Inner {
                store,
                clock,
                index,
                announced: Notify::new(),
                has_failed: AtomicBool::new(false),
            }),
        })
    }

    /// `database` or `redis`.
    pub fn kind(&self) -> &'static str {
        match self.inner.index {
            Some(_) => "redis",
            None => "database",
        }
    }

    /// Sets a timer, and replaces one with the same topic and subject.
    pub async fn set(&self, topic: &str, subject: &str, location: &str, due_ms: i64) -> Result<()> {
        self.inner
            .store
            .set_timer(topic, subject, location, due_ms)
            .await?;
        self.announce(topic, subject, location, due_ms).await;
        Ok(())
    }

    /// Removes a timer. Its entry in Redis is removed when it would have been due.
    pub async fn clear(&self, topic: &str, subject: &str) -> Result<()> {
        self.inner.store.clear_timer(topic, subject).await
    }

    /// Announces a timer that a commit has set, so that waiting servers query again.
    pub async fn announce(&self, topic: &str, subject: &str, location: &str, due_ms: i64) {
        if let Some(index) = &self.inner.index {
            let entry = TimerEntry {
                topic: topic.to_owned(),
                subject: subject.to_owned(),
                location: location.to_owned(),
                ready_ms: due_ms,
            };
            index.add(&[entry]).await;
        }
        self.inner.announced.notify_waiters();
    }

    /// Claims up to `limit` due timers of these locations for `lease`. Only one server gets each timer until the lease ends.
    pub async fn claim(
        &self,
        locations: &[String],
        holder: &str,
        lease: Duration,
        limit: usize,
    ) -> Result<Vec<Timer>> {
        let claimed = self.try_claim(locations, holder, lease, limit).await;
        self.inner
            .has_failed
            .store(claimed.is_err(), Ordering::Relaxed);
        claimed
    }

    async fn try_claim(
        &self,
        locations: &[String],
        holder: &str,
        lease: Duration,
        limit: usize,
    ) -> Result<Vec<Timer>> {
        let store = &self.inner.store;
        let now_ms = self.inner.clock.now_ms();
        let until_ms = now_ms.saturating_add(millis(lease));
        let Some(index) = &self.inner.index else {
            return store
                .claim_timers(locations, None, holder, now_ms, until_ms, limit)
                .await;
        };
        let due = index.due(locations, now_ms, limit).await;
        let Due::Candidates(candidates) = due else {
            // The index is unusable: the database is queried now, and fills the index for the next time.
            let claimed = store
                .claim_timers(locations, None, holder, now_ms, until_ms, limit)
                .await?;
            if matches!(due, Due::Stale) {
                // The claims are valid even if the index cannot be filled.
                if let Err(error) = index.fill(store, now_ms).await {
                    tracing::warn!(%error, "Failed to update the index of timers");
                }
            }
            return Ok(claimed);
        };
        let claimed = store
            .claim_timers(
                locations,
                Some(&candidates),
                holder,
                now_ms,
                until_ms,
                limit,
            )
            .await?;
        if let Err(error) = self.correct(index, &candidates).await {
            tracing::warn!(%error, "Failed to update the index of timers");
        }
        Ok(claimed)
    }

    /// Corrects the candidates in Redis from the database: claimed until the end of a lease, moved, or deleted.
    async fn correct(&self, index: &Index, candidates: &[TimerEntry]) -> Result<()> {
        let current = self.inner.store.timers_among(candidates).await?;
        let corrections = candidates.iter().map(|candidate| Correction {
            seen: candidate,
            ready_ms: current
                .iter()
                .find(|entry| {
                    entry.topic == candidate.topic
                        && entry.subject == candidate.subject
                        && entry.location == candidate.location
                })
                .map(|entry| entry.ready_ms),
        });
        index.correct(corrections).await;
        Ok(())
    }

    /// Completes a claimed timer. Returns false, and changes nothing, if it was set again, or claimed by another server after the lease
    /// ended.
    pub async fn complete(&self, timer: &Timer) -> Result<bool> {
        let is_done = self.inner.store.complete_timer(timer).await?;
        self.update_index(timer, is_done, None).await;
        Ok(is_done)
    }

    /// Schedules another attempt of a claimed timer at `due_ms`, unless it was set again or claimed by another server.
    pub async fn retry(&self, timer: &Timer, due_ms: i64, error: &str) -> Result<()> {
        let is_done = self.inner.store.retry_timer(timer, due_ms, error).await?;
        self.update_index(timer, is_done, Some(due_ms)).await;
        if is_done {
            self.inner.announced.notify_waiters();
        }
        Ok(())
    }

    /// Postpones a claimed timer whose time has not come. This is not a failure, so its attempts start again. A newer schedule stays.
    pub async fn postpone(&self, timer: &Timer, due_ms: i64) -> Result<()> {
        self.reschedule(timer, due_ms, None).await
    }

    /// Postpones a claimed timer because of an outage, which does not count as an attempt.
    pub async fn postpone_for_outage(&self, timer: &Timer, due_ms: i64, error: &str) -> Result<()> {
        self.reschedule(timer, due_ms, Some(error)).await
    }

    async fn reschedule(&self, timer: &Timer, due_ms: i64, error: Option<&str>) -> Result<()> {
        let store = &self.inner.store;
        let is_done = store.postpone_timer(timer, due_ms, error).await?;
        self.update_index(timer, is_done, Some(due_ms)).await;
        if is_done {
            self.inner.announced.notify_waiters();
        }
        Ok(())
    }

    /// Marks a claimed timer as dead, unless it was set again or claimed by another server.
    pub async fn mark_dead(&self, timer: &Timer, error: &str) -> Result<()> {
        let is_done = self.inner.store.mark_timer_dead(timer, error).await?;
        self.update_index(timer, is_done, None).await;
        Ok(())
    }

    /// Updates the index after the end of a claim.
    async fn update_index(&self, timer: &Timer, is_done: bool, ready_ms: Option<i64>) {
        if let (Some(index), true) = (&self.inner.index, is_done) {
            let seen = TimerEntry {
                topic: timer.topic.clone(),
                subject: timer.subject.clone(),
                location: timer.location.clone(),
                ready_ms: timer.claimed_until_ms,
            };
            let correction = Correction {
                seen: &seen,
                ready_ms,
            };
            index.correct(std::iter::once(correction)).await;
        }
    }

    /// Lists dead timers.
    pub async fn dead(&self) -> Result<Vec<Timer>> {
        self.inner.store.dead_timers().await
    }

    /// Revives a dead timer now. Returns false if there is none.
    pub async fn revive(&self, topic: &str, subject: &str) -> Result<bool> {
        let now_ms = self.inner.clock.now_ms();
        let location = self
            .inner
            .store
            .revive_timer(topic, subject, now_ms)
            .await?;
        if let Some(location) = &location {
            self.announce(topic, subject, location, now_ms).await;
        }
        Ok(location.is_some())
    }

    /// Revives all dead timers of a location that were last due before a time. Returns how many.
    pub async fn revive_all(&self, location: &str, before_ms: i64) -> Result<usize> {
        let now_ms = self.inner.clock.now_ms();
        let store = &self.inner.store;
        let revived = store.revive_timers(location, before_ms, now_ms).await?;
        if !revived.is_empty() {
            if let Some(index) = &self.inner.index {
                index.add(&revived).await;
            }
            self.inner.announced.notify_waiters();
        }
        Ok(revived.len())
    }

    /// Waits until a timer of these locations may be due or one was announced, at most `max_wait`.
    pub async fn wait(&self, locations: &[String], max_wait: Duration) {
        // Enabled before the query, so that no announcement is missed.
        let announced = self.inner.announced.notified();
        tokio::pin!(announced);
        announced.as_mut().enable();
        let pause = self.pause(locations).await.min(max_wait);
        if !pause.is_zero() {
            let _ = tokio::time::timeout(pause, announced).await;
        }
    }

    /// How long no timer can be due, as far as this server knows.
    async fn pause(&self, locations: &[String]) -> Duration {
        let longest = self.longest_pause();
        if self.inner.has_failed.load(Ordering::Relaxed) {
            return longest.min(FAILURE_PAUSE);
        }
        let indexed = match &self.inner.index {
            Some(index) => index.next(locations).await,
            None => None,
        };
        let next = match indexed {
            Some(next) => Ok(next),
            None => self.inner.store.next_timer(locations).await,
        };
        match next {
            Ok(Some(next_ms)) => {
                let remaining_ms = next_ms.saturating_sub(self.inner.clock.now_ms());
                longest.min(Duration::from_millis(remaining_ms.max(0) as u64))
            }
            Ok(None) => longest,
            Err(_) => longest.min(FAILURE_PAUSE),
        }
    }

    fn longest_pause(&self) -> Duration {
        let is_shared = self.inner.index.is_some() || self.inner.store.kind() == "postgres";
        match (&self.inner.clock, is_shared) {
            (Clock::Manual(_), _) => MANUAL_PAUSE,
            (Clock::System, true) => SHARED_PAUSE,
            (Clock::System, false) => Duration::MAX,
        }
    }
}
