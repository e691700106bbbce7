//! The index of timers in Redis: for each location, which timers may be due when.
//!
//! The index only proposes candidates. An entry that is too early costs one query of the database, which corrects it. Announcing a timer never
//! makes its entry later, so that two servers that announce at once cannot hide the earlier time. The index is filled from the database
//! every [`FRESH`], and at once when Redis was restarted empty, because the key that marks it as filled is then missing too. A server that
//! failed to update Redis queries the database until it has filled the index. Requires Redis 6.2; an older version counts as unreachable.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, Pipeline, RedisResult, Script};
use tokio::time::timeout;
use tracing::{info, warn};

use crate::address::without_secrets;
use crate::error::{Result, StoreError};
use crate::store::Store;
use crate::timer_rows::TimerEntry;

/// Longest wait for an answer of Redis. The database can answer instead, so a longer wait is useless.
const REDIS_TIMEOUT: Duration = Duration::from_millis(300);
/// How long Redis is not used after a failure.
const BACKOFF: Duration = Duration::from_secs(1);
/// How long a filled index is trusted.
const FRESH: Duration = Duration::from_secs(10);
/// How far ahead the index is filled: three times as long as it is trusted.
const AHEAD_MS: i64 = 30_000;
/// Most timers filled in at once. The rest follows the next time.
const MAX_FILL: i64 = 10_000;
/// When Redis deletes the index of a location that is no longer used.
const EXPIRE_S: i64 = 7 * 24 * 3600;
/// Separates topic and subject; neither contains it.
const SEPARATOR: char = '\u{1f}';

/// Moves or removes entries that have not changed since they were read: a timer may have been announced since.
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

/// The index in Redis, which may be unreachable.
pub(super) struct Index {
    connection: ConnectionManager,
    /// The prefix of all keys, unique per database, so that installations can share a Redis.
    prefix: String,
    correct: Script,
    backoff_until: Mutex<Option<Instant>>,
    /// Whether an update failed, so that entries are missing until the index is filled.
    is_incomplete: AtomicBool,
}

/// The due timers in the index.
pub(super) enum Due {
    /// All due timers, and possibly others.
    Candidates(Vec<TimerEntry>),
    /// The index has to be filled first.
    Stale,
    /// Redis does not answer.
    Unreachable,
}

/// The correct time of an entry that was read.
pub(super) struct Correction<'a> {
    pub(super) seen: &'a TimerEntry,
    /// When the timer can be claimed; none if it is deleted.
    pub(super) ready_ms: Option<i64>,
}

impl Index {
    pub(super) async fn open(url: &str, store: &Store) -> Result<Self> {
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
            // In braces, so that a Redis cluster keeps all these keys on one node.
            prefix: format!("sandyard:{{{name}}}:timers"),
            correct: Script::new(CORRECT),
            backoff_until: Mutex::new(None),
            is_incomplete: AtomicBool::new(false),
        })
    }

    /// Adds timers, or moves them to an earlier time.
    pub(super) async fn add(&self, entries: &[TimerEntry]) {
        let mut pipeline = redis::pipe();
        self.pipe_entries(&mut pipeline, entries);
        if self.run::<()>(&pipeline).await.is_none() {
            self.is_incomplete.store(true, Ordering::SeqCst);
        }
    }

    /// Lists the timers that may be due.
    pub(super) async fn due(&self, locations: &[String], now_ms: i64, limit: usize) -> Due {
        let mut pipeline = redis::pipe();
        pipeline.cmd("EXISTS").arg(self.filled_key());
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
            return Due::Unreachable;
        };
        if !is_filled || self.is_incomplete.load(Ordering::SeqCst) {
            return Due::Stale;
        }
        let mut candidates: Vec<_> = locations
            .iter()
            .zip(lists)
            .flat_map(|(location, list)| list.into_iter().map(move |entry| (location, entry)))
            .filter_map(|(location, (member, ready_ms))| {
                let (topic, subject) = member.split_once(SEPARATOR)?;
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
        Due::Candidates(candidates)
    }

    /// When the next timer may be due. The outer none means that the index does not know.
    pub(super) async fn next(&self, locations: &[String]) -> Option<Option<i64>> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("EXISTS").arg(self.filled_key());
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

    /// Fills the index with timers that are due soon, and marks it as filled.
    pub(super) async fn fill(&self, store: &Store, now_ms: i64) -> Result<()> {
        // Cleared first: an update that fails during the fill counts again.
        let was_incomplete = self.is_incomplete.swap(false, Ordering::SeqCst);
        let filled = self.try_fill(store, now_ms).await;
        if !matches!(filled, Ok(true)) && was_incomplete {
            self.is_incomplete.store(true, Ordering::SeqCst);
        }
        filled.map(drop)
    }

    async fn try_fill(&self, store: &Store, now_ms: i64) -> Result<bool> {
        let entries = store
            .timers_before(now_ms.saturating_add(AHEAD_MS), MAX_FILL)
            .await?;
        for chunk in entries.chunks(500) {
            let mut pipeline = redis::pipe();
            self.pipe_entries(&mut pipeline, chunk);
            if self.run::<()>(&pipeline).await.is_none() {
                return Ok(false);
            }
        }
        let mut pipeline = redis::pipe();
        pipeline
            .cmd("SET")
            .arg(self.filled_key())
            .arg(1)
            .arg("PX")
            .arg(FRESH.as_millis() as u64)
            .ignore();
        Ok(self.run::<()>(&pipeline).await.is_some())
    }

    /// Corrects entries that have not changed since they were read.
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
            self.note_answer(done).is_some()
        };
        // If this failed, an entry is too early, which the next query corrects, or too late, which only filling the index corrects.
        if !is_done && is_sooner {
            self.is_incomplete.store(true, Ordering::SeqCst);
        }
    }

    /// Adds entries, or makes them earlier. Only [`Index::correct`] makes an entry later.
    fn pipe_entries(&self, pipeline: &mut Pipeline, entries: &[TimerEntry]) {
        for entry in entries {
            let key = self.key(&entry.location);
            pipeline
                .cmd("ZADD")
                .arg(&key)
                .arg("LT")
                .arg(entry.ready_ms)
                .arg(member(entry))
                .ignore();
            pipeline.cmd("EXPIRE").arg(key).arg(EXPIRE_S).ignore();
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
        self.note_answer(timeout(REDIS_TIMEOUT, pipeline.query_async(&mut connection)).await)
    }

    fn is_backing_off(&self) -> bool {
        let backoff_until = self.backoff_until.lock();
        backoff_until.is_some_and(|until| Instant::now() < until)
    }

    /// Records whether Redis answers, and logs a change.
    fn note_answer<T>(
        &self,
        answer: Result<RedisResult<T>, tokio::time::error::Elapsed>,
    ) -> Option<T> {
        let mut backoff_until = self.backoff_until.lock();
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
                "Redis does not answer; querying the database for timers instead"
            );
        }
        *backoff_until = Some(Instant::now() + BACKOFF);
        None
    }

    fn key(&self, location: &str) -> String {
        format!("{}:{location}", self.prefix)
    }

    fn filled_key(&self) -> String {
        format!("{}-filled", self.prefix)
    }
}

fn member(entry: &TimerEntry) -> String {
    format!("{}{SEPARATOR}{}", entry.topic, entry.subject)
}

/// A name that is unique among installations.
fn random_name() -> String {
    // Random bytes are always available in practice; a shared name would only cost some queries.
    sandyard_core::random::text::<8>().unwrap_or_else(|_| "0".repeat(16))
}
