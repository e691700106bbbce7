//! The index in Redis: for each place, which timers may be due when.
//!
//! It only ever proposes. An entry that is too early costs one look into the store, which corrects it; announcing never
//! makes an entry later than it is, so that two servers that announce at once cannot hide the sooner one. What Redis
//! forgets is filled in again from the store: every [`FRESH`], and at once when Redis comes back empty, because the mark
//! that says «filled» is then gone with the rest. A server that could not tell Redis something asks the store itself
//! until it has filled the index. Needs Redis 6.2; an older one is treated like one that does not answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, Pipeline, RedisResult, Script};
use tokio::time::timeout;
use tracing::{info, warn};

use crate::address::without_secrets;
use crate::error::{StoreError, StoreResult};
use crate::store::Store;
use crate::timer_rows::TimerEntry;

/// Longest wait for one answer of Redis. The store answers as well, so there is no point in more.
const REDIS_TIMEOUT: Duration = Duration::from_millis(300);
/// How long Redis is left alone after it failed.
const BACKOFF: Duration = Duration::from_secs(1);
/// How long a filled index is trusted.
const FRESH: Duration = Duration::from_secs(10);
/// What is filled in reaches so far ahead: three times as far as it is trusted.
const AHEAD_MS: i64 = 30_000;
/// Most timers filled in at once; if more are due, the rest follows next time.
const MOST: i64 = 10_000;
/// A place nobody speaks of any more is forgotten.
const FORGET_S: i64 = 7 * 24 * 3600;
/// Between topic and subject; in neither.
const BETWEEN: char = '\u{1f}';

/// Moves or removes entries, but only those that are still as they were seen: another may have been announced since.
const CORRECT: &str = r"
for i = 1, #KEYS do
  local seen = redis.call('ZSCORE', KEYS[i], ARGV[3 * i - 2])
  if seen and tonumber(seen) == tonumber(ARGV[3 * i - 1]) then
    if ARGV[3 * i] == '' then
      redis.call('ZREM', KEYS[i], ARGV[3 * i - 2])
    else
      redis.call('ZADD', KEYS[i], ARGV[3 * i], ARGV[3 * i - 2])
    end
  end
end
return 1";

/// Redis, as far as it can be reached.
pub(super) struct Index {
    connection: ConnectionManager,
    /// Begins all keys; new for every database, so that two installations can share a Redis.
    prefix: String,
    correct: Script,
    backoff_until: Mutex<Option<Instant>>,
    /// Something could not be told, so the list has a hole only the store can fill.
    is_incomplete: AtomicBool,
}

/// What Redis knows of due timers.
pub(super) enum Due {
    /// All of them, perhaps more.
    Known(Vec<TimerEntry>),
    /// It answers, but its list has to be filled first.
    Stale,
    /// It does not answer.
    Down,
}

/// What an entry, as it was seen, should be.
pub(super) struct Correction<'a> {
    pub(super) seen: &'a TimerEntry,
    /// When it may be claimed; none: it is gone.
    pub(super) ready_ms: Option<i64>,
}

impl Index {
    pub(super) async fn open(url: &str, store: &Store) -> StoreResult<Self> {
        let bad = |error: redis::RedisError| StoreError::BadUrl {
            url: without_secrets(url),
            detail: error.to_string(),
        };
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(REDIS_TIMEOUT))
            .set_response_timeout(Some(REDIS_TIMEOUT))
            .set_min_delay(Duration::from_millis(20))
            .set_max_delay(REDIS_TIMEOUT)
            .set_number_of_retries(3);
        let client = Client::open(url).map_err(bad)?;
        let connection = ConnectionManager::new_lazy_with_config(client, config).map_err(bad)?;
        let name = store.meta_or_insert("timers_name", &random_name()).await?;
        Ok(Self {
            connection,
            // In braces: a cluster keeps all these keys in one place.
            prefix: format!("sandyard:{{{name}}}:timers"),
            correct: Script::new(CORRECT),
            backoff_until: Mutex::new(None),
            is_incomplete: AtomicBool::new(false),
        })
    }

    /// Adds timers, or moves them to an earlier time.
    pub(super) async fn add(&self, places: &[TimerEntry]) {
        let mut pipeline = redis::pipe();
        self.pipe_entries(&mut pipeline, places);
        if self.run::<()>(&pipeline).await.is_none() {
            self.is_incomplete.store(true, Ordering::SeqCst);
        }
    }

    /// Lists what may be due.
    pub(super) async fn due(&self, locations: &[String], now_ms: i64, limit: usize) -> Due {
        let mut pipeline = redis::pipe();
        pipeline.cmd("EXISTS").arg(self.mark());
        for location in locations {
            pipeline
                .cmd("ZRANGEBYSCORE")
                .arg(self.key(location))
                .arg("-inf")
                .arg(now_ms)
                .arg("WITHSCORES")
                .arg("LIMIT")
                .arg(0)
                .arg(limit.min(1000));
        }
        let Some((is_filled, lists)) = self.lists(&pipeline).await else {
            return Due::Down;
        };
        if !is_filled || self.is_incomplete.load(Ordering::SeqCst) {
            return Due::Stale;
        }
        let mut candidates: Vec<_> = locations
            .iter()
            .zip(lists)
            .flat_map(|(location, list)| list.into_iter().map(move |entry| (location, entry)))
            .filter_map(|(location, (member, ready_ms))| {
                let (topic, subject) = member.split_once(BETWEEN)?;
                Some(TimerEntry {
                    topic: topic.to_owned(),
                    subject: subject.to_owned(),
                    location: location.clone(),
                    ready_ms: ready_ms as i64,
                })
            })
            .collect();
        candidates.sort_by_key(|candidate| candidate.ready_ms);
        candidates.truncate(limit.min(1000));
        Due::Known(candidates)
    }

    /// When the next timer may be due; the outer none: the store has to be asked.
    pub(super) async fn next(&self, locations: &[String]) -> Option<Option<i64>> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("EXISTS").arg(self.mark());
        for location in locations {
            pipeline
                .cmd("ZRANGE")
                .arg(self.key(location))
                .arg(0)
                .arg(0)
                .arg("WITHSCORES");
        }
        let (is_filled, lists) = self.lists(&pipeline).await?;
        if !is_filled || self.is_incomplete.load(Ordering::SeqCst) {
            return None;
        }
        let soonest = lists
            .into_iter()
            .flatten()
            .map(|(_, ready_ms)| ready_ms as i64);
        Some(soonest.min())
    }

    /// Fills in what is due soon, and says so for a while.
    pub(super) async fn fill(&self, store: &Store, now_ms: i64) -> StoreResult<()> {
        // Cleared first: a hole made while this runs is another one.
        let was_incomplete = self.is_incomplete.swap(false, Ordering::SeqCst);
        let filled = self.try_fill(store, now_ms).await;
        if !matches!(filled, Ok(true)) && was_incomplete {
            self.is_incomplete.store(true, Ordering::SeqCst);
        }
        filled.map(drop)
    }

    async fn try_fill(&self, store: &Store, now_ms: i64) -> StoreResult<bool> {
        let places = store
            .timers_before(now_ms.saturating_add(AHEAD_MS), MOST)
            .await?;
        for chunk in places.chunks(500) {
            let mut pipeline = redis::pipe();
            self.pipe_entries(&mut pipeline, chunk);
            if self.run::<()>(&pipeline).await.is_none() {
                return Ok(false);
            }
        }
        let mut pipeline = redis::pipe();
        pipeline
            .cmd("SET")
            .arg(self.mark())
            .arg(1)
            .arg("PX")
            .arg(FRESH.as_millis() as u64)
            .ignore();
        Ok(self.run::<()>(&pipeline).await.is_some())
    }

    /// Corrects entries that are still as they were seen.
    pub(super) async fn correct<'a>(&self, corrections: impl Iterator<Item = Correction<'a>>) {
        let mut call = self.correct.prepare_invoke();
        let (mut is_empty, mut is_sooner) = (true, false);
        for Correction { seen, ready_ms } in corrections {
            is_empty = false;
            is_sooner |= ready_ms.is_some_and(|ready_ms| ready_ms < seen.ready_ms);
            call.key(self.key(&seen.location))
                .arg(member(seen))
                .arg(seen.ready_ms)
                .arg(ready_ms.map_or_else(String::new, |ready_ms| ready_ms.to_string()));
        }
        if is_empty {
            return;
        }
        let is_done = !self.is_backing_off() && {
            let mut connection = self.connection.clone();
            let done = timeout(REDIS_TIMEOUT, call.invoke_async::<()>(&mut connection)).await;
            self.judge(done).is_some()
        };
        // Without it an entry is too early, which the next look corrects, or too late, which only the store knows.
        if !is_done && is_sooner {
            self.is_incomplete.store(true, Ordering::SeqCst);
        }
    }

    /// An entry is only ever made earlier here; later is for [`Index::correct`].
    fn pipe_entries(&self, pipeline: &mut Pipeline, places: &[TimerEntry]) {
        for place in places {
            let key = self.key(&place.location);
            pipeline
                .cmd("ZADD")
                .arg(&key)
                .arg("LT")
                .arg(place.ready_ms)
                .arg(member(place))
                .ignore();
            pipeline.cmd("EXPIRE").arg(key).arg(FORGET_S).ignore();
        }
    }

    async fn lists(&self, pipeline: &Pipeline) -> Option<(bool, Vec<Vec<(String, f64)>>)> {
        let mut answers = self.run::<Vec<redis::Value>>(pipeline).await?.into_iter();
        let is_filled: bool = redis::from_redis_value(answers.next()?).ok()?;
        let lists = answers
            .map(redis::from_redis_value)
            .collect::<Result<_, _>>();
        Some((is_filled, lists.ok()?))
    }

    async fn run<T: redis::FromRedisValue>(&self, pipeline: &Pipeline) -> Option<T> {
        if self.is_backing_off() {
            return None;
        }
        let mut connection = self.connection.clone();
        self.judge(timeout(REDIS_TIMEOUT, pipeline.query_async(&mut connection)).await)
    }

    fn is_backing_off(&self) -> bool {
        let backoff_until = self
            .backoff_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        backoff_until.is_some_and(|until| Instant::now() < until)
    }

    /// Notes how Redis does, and says so when that changes.
    fn judge<T>(&self, answer: Result<RedisResult<T>, tokio::time::error::Elapsed>) -> Option<T> {
        let mut backoff_until = self
            .backoff_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let cause = match answer {
            Ok(Ok(answer)) => {
                if backoff_until.take().is_some() {
                    info!("Redis answers again");
                }
                return Some(answer);
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        if backoff_until.is_none() {
            warn!(
                cause,
                "Redis does not answer; the database is asked for timers instead"
            );
        }
        *backoff_until = Some(Instant::now() + BACKOFF);
        None
    }

    fn key(&self, location: &str) -> String {
        format!("{}:{location}", self.prefix)
    }

    fn mark(&self) -> String {
        format!("{}-filled", self.prefix)
    }
}

fn member(place: &TimerEntry) -> String {
    format!("{}{BETWEEN}{}", place.topic, place.subject)
}

/// A name no other installation has.
fn random_name() -> String {
    // No kernel we run on is without; a shared name would only cost some looks.
    sandyard_core::random::text::<8>().unwrap_or_else(|_| "0".repeat(16))
}
