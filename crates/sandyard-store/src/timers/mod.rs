//! The queue of what is due.
//!
//! - `index`: Redis' part, and what happens without it
//! - here: claims, from the index' candidates or straight from the store, and waiting

mod index;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sandyard_core::Clock;
use tokio::sync::Notify;

use self::index::{Correction, Due, Index};
use crate::error::StoreResult;
use crate::model::Timer;
use crate::store::Store;
use crate::timer_rows::TimerEntry;

/// Longest time between two looks when others may set timers too.
const SHARED_PAUSE: Duration = Duration::from_secs(1);
/// The same when a test moves the clock.
const MANUAL_PAUSE: Duration = Duration::from_millis(10);
/// Pause after a failure, so that nobody asks a broken database all the time.
const FAILURE_PAUSE: Duration = Duration::from_millis(250);

/// The queue over the store's timers. With Redis, servers learn from it what is due instead of asking the database; the
/// claim is always the store's, so a timer fires once whatever Redis says or forgets.
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
    /// The queue of `store`, with Redis if a URL is given. An unreachable Redis is no error: the store is asked until it
    /// is back.
    pub async fn open(store: Store, redis_url: Option<&str>, clock: Clock) -> StoreResult<Self> {
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

    /// Sets a timer in place of the one with the same topic and subject.
    pub async fn set(
        &self,
        topic: &str,
        subject: &str,
        location: &str,
        due_ms: i64,
    ) -> StoreResult<()> {
        self.inner
            .store
            .set_timer(topic, subject, location, due_ms)
            .await?;
        self.announce(topic, subject, location, due_ms).await;
        Ok(())
    }

    /// Takes a timer away. Redis finds out when it would have been due.
    pub async fn clear(&self, topic: &str, subject: &str) -> StoreResult<()> {
        self.inner.store.clear_timer(topic, subject).await
    }

    /// Tells the queue of a timer that a commit of the store has set, so that whoever waits looks again.
    pub async fn announce(&self, topic: &str, subject: &str, location: &str, due_ms: i64) {
        if let Some(index) = &self.inner.index {
            let place = TimerEntry {
                topic: topic.to_owned(),
                subject: subject.to_owned(),
                location: location.to_owned(),
                ready_ms: due_ms,
            };
            index.add(&[place]).await;
        }
        self.inner.announced.notify_waiters();
    }

    /// Claims up to `limit` due timers of these places for `lease`; each is handed to one server only, until the lease
    /// ends.
    pub async fn claim(
        &self,
        locations: &[String],
        holder: &str,
        lease: Duration,
        limit: usize,
    ) -> StoreResult<Vec<Timer>> {
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
    ) -> StoreResult<Vec<Timer>> {
        let store = &self.inner.store;
        let now_ms = self.inner.clock.now_ms();
        let lease_ms = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
        let until_ms = now_ms.saturating_add(lease_ms);
        let Some(index) = &self.inner.index else {
            return store
                .claim_timers(locations, None, holder, now_ms, until_ms, limit)
                .await;
        };
        let due = index.due(locations, now_ms, limit).await;
        let Due::Known(candidates) = due else {
            // Its list is not to be trusted: the store is asked at once, and fills it again for the next time.
            let claimed = store
                .claim_timers(locations, None, holder, now_ms, until_ms, limit)
                .await?;
            if matches!(due, Due::Stale) {
                // What was claimed is ours whatever becomes of the index.
                if let Err(error) = index.fill(store, now_ms).await {
                    tracing::warn!(%error, "The index of timers stays as it was for now");
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
            tracing::warn!(%error, "The index of timers stays as it was for now");
        }
        Ok(claimed)
    }

    /// Tells Redis where its candidates really stand: claimed until the end of a lease, moved, or gone.
    async fn correct(&self, index: &Index, candidates: &[TimerEntry]) -> StoreResult<()> {
        let truth = self.inner.store.timers_among(candidates).await?;
        let corrections = candidates.iter().map(|candidate| Correction {
            seen: candidate,
            ready_ms: truth
                .iter()
                .find(|place| {
                    place.topic == candidate.topic
                        && place.subject == candidate.subject
                        && place.location == candidate.location
                })
                .map(|place| place.ready_ms),
        });
        index.correct(corrections).await;
        Ok(())
    }

    /// Ends a claimed timer; false: it was set anew meanwhile, or another has claimed it since the lease ended, and that
    /// one stays.
    pub async fn complete(&self, timer: &Timer) -> StoreResult<bool> {
        let is_done = self.inner.store.complete_timer(timer).await?;
        self.note(timer, is_done, None).await;
        Ok(is_done)
    }

    /// Puts a claimed timer back, to be tried again at `due_ms`, unless it was set anew or claimed by another meanwhile.
    pub async fn retry(&self, timer: &Timer, due_ms: i64, error: &str) -> StoreResult<()> {
        let is_done = self.inner.store.retry_timer(timer, due_ms, error).await?;
        self.note(timer, is_done, Some(due_ms)).await;
        if is_done {
            self.inner.announced.notify_waiters();
        }
        Ok(())
    }

    /// Puts a claimed timer off because its time has not come: no failure, so its tries count from the start. A newer
    /// schedule stays.
    pub async fn postpone(&self, timer: &Timer, due_ms: i64) -> StoreResult<()> {
        self.reschedule(timer, due_ms, None).await
    }

    /// Puts a claimed timer off because what it needs is away: that is no failure of its own and not counted as one.
    pub async fn postpone_for_outage(
        &self,
        timer: &Timer,
        due_ms: i64,
        error: &str,
    ) -> StoreResult<()> {
        self.reschedule(timer, due_ms, Some(error)).await
    }

    async fn reschedule(&self, timer: &Timer, due_ms: i64, error: Option<&str>) -> StoreResult<()> {
        let store = &self.inner.store;
        let is_done = store.postpone_timer(timer, due_ms, error).await?;
        self.note(timer, is_done, Some(due_ms)).await;
        if is_done {
            self.inner.announced.notify_waiters();
        }
        Ok(())
    }

    /// Lays a claimed timer among the dead, unless it was set anew or claimed by another meanwhile.
    pub async fn mark_dead(&self, timer: &Timer, error: &str) -> StoreResult<()> {
        let is_done = self.inner.store.mark_timer_dead(timer, error).await?;
        self.note(timer, is_done, None).await;
        Ok(())
    }

    /// Tells Redis what became of a claim.
    async fn note(&self, timer: &Timer, is_done: bool, ready_ms: Option<i64>) {
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

    /// Lists the dead.
    pub async fn dead(&self) -> StoreResult<Vec<Timer>> {
        self.inner.store.dead_timers().await
    }

    /// Gives a dead timer another chance now; false: there is none.
    pub async fn revive(&self, topic: &str, subject: &str) -> StoreResult<bool> {
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

    /// Gives all dead timers of a place that were last due before a time another chance now; returns how many.
    pub async fn revive_all(&self, location: &str, before_ms: i64) -> StoreResult<usize> {
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

    /// Waits until something of these places may be due, at most `most`: a timer's time has come, or one was announced.
    pub async fn wait(&self, locations: &[String], most: Duration) {
        // Listening begins before looking: what is set before is seen, what is set after is heard.
        let announced = self.inner.announced.notified();
        tokio::pin!(announced);
        announced.as_mut().enable();
        let pause = self.pause(locations).await.min(most);
        if !pause.is_zero() {
            let _ = tokio::time::timeout(pause, announced).await;
        }
    }

    /// How long nothing can be due, as far as is known.
    async fn pause(&self, locations: &[String]) -> Duration {
        let longest = self.longest_pause();
        if self.inner.has_failed.load(Ordering::Relaxed) {
            return longest.min(FAILURE_PAUSE);
        }
        let known = match &self.inner.index {
            Some(index) => index.next(locations).await,
            None => None,
        };
        let next = match known {
            Some(next) => Ok(next),
            None => self.inner.store.next_timer(locations).await,
        };
        match next {
            Ok(Some(next_ms)) => {
                let left_ms = next_ms.saturating_sub(self.inner.clock.now_ms());
                longest.min(Duration::from_millis(left_ms.max(0) as u64))
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
