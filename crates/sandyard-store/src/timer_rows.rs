//! The table of timers, which is authoritative.
//!
//! ```text
//!  set ─▶ waiting ── claim ──▶ claimed ── complete ──▶ (deleted)
//!            ▲                 │  │  └─ mark_dead ───▶ dead ── revive ─▶ waiting
//!            └─ retry, or its ─┘  │
//!               lease ended       └─ set again ▶ waiting, next generation
//! ```
//!
//! Generation and attempts identify a claim: every `set` increments the one, every claim the other. So `complete`, `retry` and `mark_dead`
//! of a claim that is over – the timer was set again, or another server claimed it – find no row and change nothing: the newer schedule
//! and the other claim stay.

use std::time::SystemTime;

use sandyard_core::SandboxId;
use sqlx::any::AnyRow;

use crate::db::{Engine, Tx};
use crate::error::Result;
use crate::model::{Timer, TimerPlan};
use crate::sql::{Record, Sql, sql};
use crate::store::Store;

/// The topic of the timers of sandboxes.
pub const SANDBOX_TOPIC: &str = "sandbox";
const TABLE: &str = "timers";
/// Most timers in a list of dead ones.
const MAX_DEAD: i64 = 1000;

/// A timer's entry in the index in Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimerEntry {
    pub(crate) topic: String,
    pub(crate) subject: String,
    pub(crate) location: String,
    pub(crate) ready_ms: i64,
}

/// Applies the timer plan of a commit.
pub(crate) async fn apply(
    tx: &mut Tx<'_>,
    id: &SandboxId,
    location: &str,
    plan: TimerPlan,
) -> Result<()> {
    match plan {
        TimerPlan::Keep => {}
        TimerPlan::Set { due_ms } => {
            tx.execute(set(SANDBOX_TOPIC, id.as_str(), location, due_ms))
                .await?;
        }
        TimerPlan::Clear => {
            tx.execute(clear(SANDBOX_TOPIC, id.as_str())).await?;
        }
    }
    Ok(())
}

fn set(topic: &str, subject: &str, location: &str, due_ms: i64) -> Sql {
    sql("INSERT INTO timers (topic, subject, location, due_ms, ready_ms, generation, attempts, is_dead) \
         VALUES ($1, $2, $3, $4, $4, $5, 0, 0) ON CONFLICT (topic, subject) DO UPDATE SET \
         location = excluded.location, due_ms = excluded.due_ms, ready_ms = excluded.ready_ms, \
         generation = timers.generation + 1, attempts = 0, claimed_by = NULL, is_dead = 0, last_error = NULL")
    .text(topic)
    .text(subject)
    .text(location)
    .int(due_ms)
    .int(first_generation())
    .repeatable()
}

fn clear(topic: &str, subject: &str) -> Sql {
    sql("DELETE FROM timers WHERE topic = $1 AND subject = $2")
        .text(topic)
        .text(subject)
        .repeatable()
}

/// The first generation of a timer. Not 1: a timer that was removed and set again must differ from the one before it, which another server may
/// still have claimed.
fn first_generation() -> i64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(1, |since| since.as_micros() as i64)
}

impl Store {
    pub(crate) async fn set_timer(
        &self,
        topic: &str,
        subject: &str,
        location: &str,
        due_ms: i64,
    ) -> Result<()> {
        let set = set(topic, subject, location, due_ms);
        self.db.execute("setting a timer", set).await?;
        Ok(())
    }

    pub(crate) async fn clear_timer(&self, topic: &str, subject: &str) -> Result<()> {
        self.db
            .execute("removing a timer", clear(topic, subject))
            .await?;
        Ok(())
    }

    /// Claims due timers of these locations; only those among `candidates`, if given.
    pub(crate) async fn claim_timers(
        &self,
        locations: &[String],
        candidates: Option<&[TimerEntry]>,
        holder: &str,
        now_ms: i64,
        until_ms: i64,
        limit: usize,
    ) -> Result<Vec<Timer>> {
        if locations.is_empty() || limit == 0 || candidates.is_some_and(<[_]>::is_empty) {
            return Ok(Vec::new());
        }
        let mut claim = sql(
            "WITH due AS MATERIALIZED (SELECT topic, subject FROM timers \
             WHERE is_dead = 0 AND ready_ms <= $1 AND location IN ",
        )
        .int(now_ms)
        .add_texts(locations.iter().map(String::as_str));
        if let Some(candidates) = candidates {
            claim = among(claim.add(" AND "), candidates);
        }
        claim = claim
            .add_next(" ORDER BY ready_ms LIMIT ")
            .int(limit.min(1000) as i64);
        if self.db.engine() == Engine::Postgres {
            claim = claim.add(" FOR UPDATE SKIP LOCKED");
        }
        let claim = claim
            .add_next(") UPDATE timers SET claimed_by = ")
            .text(holder)
            .add_next(", ready_ms = ")
            .int(until_ms)
            .add(
                ", attempts = attempts + 1 FROM due \
                 WHERE timers.topic = due.topic AND timers.subject = due.subject \
                 RETURNING timers.topic AS topic, timers.subject AS subject, timers.location AS location, \
                 timers.due_ms AS due_ms, timers.ready_ms AS ready_ms, timers.generation AS generation, \
                 timers.attempts AS attempts, timers.last_error AS last_error",
            );
        let rows = self.db.write("claiming due timers", claim).await?;
        let mut timers = rows.iter().map(read).collect::<Result<Vec<_>>>()?;
        timers.sort_by_key(|timer| timer.due_ms);
        Ok(timers)
    }

    pub(crate) async fn complete_timer(&self, timer: &Timer) -> Result<bool> {
        let complete = of_claim(sql("DELETE FROM timers"), timer);
        Ok(self.db.execute("completing a timer", complete).await? > 0)
    }

    pub(crate) async fn retry_timer(
        &self,
        timer: &Timer,
        due_ms: i64,
        error: &str,
    ) -> Result<bool> {
        let retry =
            sql("UPDATE timers SET due_ms = $1, ready_ms = $1, claimed_by = NULL, last_error = $2")
                .int(due_ms)
                .text(error);
        let retry = of_claim(retry, timer).repeatable();
        Ok(self.db.execute("retrying a timer", retry).await? > 0)
    }

    pub(crate) async fn postpone_timer(
        &self,
        timer: &Timer,
        due_ms: i64,
        error: Option<&str>,
    ) -> Result<bool> {
        // A new generation, because attempts start again, and the two together identify a claim.
        let later = sql("UPDATE timers SET due_ms = $1, ready_ms = $1, claimed_by = NULL, attempts = 0, last_error = $2, \
             generation = generation + 1")
        .int(due_ms)
        .maybe_text(error);
        let later = of_claim(later, timer).repeatable();
        Ok(self.db.execute("postponing a timer", later).await? > 0)
    }

    pub(crate) async fn mark_timer_dead(&self, timer: &Timer, error: &str) -> Result<bool> {
        let mark =
            sql("UPDATE timers SET is_dead = 1, claimed_by = NULL, last_error = $1").text(error);
        let mark = of_claim(mark, timer).repeatable();
        Ok(self.db.execute("marking a timer dead", mark).await? > 0)
    }

    pub(crate) async fn dead_timers(&self) -> Result<Vec<Timer>> {
        let query = sql(
            "SELECT topic, subject, location, due_ms, ready_ms, generation, attempts, last_error \
             FROM timers WHERE is_dead = 1 ORDER BY due_ms LIMIT $1",
        )
        .int(MAX_DEAD);
        let rows = self.db.read("listing dead timers", query).await?;
        rows.iter().map(read).collect()
    }

    /// Revives a dead timer. Returns its location; none if there is no such timer.
    pub(crate) async fn revive_timer(
        &self,
        topic: &str,
        subject: &str,
        now_ms: i64,
    ) -> Result<Option<String>> {
        let revive = sql("UPDATE timers SET is_dead = 0, due_ms = $1, ready_ms = $1, attempts = 0, \
             generation = generation + 1 WHERE topic = $2 AND subject = $3 AND is_dead = 1 RETURNING location")
        .int(now_ms)
        .text(topic)
        .text(subject);
        let rows = self.db.write("reviving a timer", revive).await?;
        rows.first()
            .map(|row| Record::new(TABLE, row).text("location"))
            .transpose()
    }

    /// Revives all dead timers of a location that were last due before a time. Returns their index entries.
    pub(crate) async fn revive_timers(
        &self,
        location: &str,
        before_ms: i64,
        now_ms: i64,
    ) -> Result<Vec<TimerEntry>> {
        let revive = sql(
            "UPDATE timers SET is_dead = 0, due_ms = $1, ready_ms = $1, attempts = 0, \
             generation = generation + 1 WHERE location = $2 AND due_ms < $3 AND is_dead = 1 \
             RETURNING topic, subject, location, ready_ms",
        )
        .int(now_ms)
        .text(location)
        .int(before_ms);
        let rows = self.db.write("reviving the timers of a location", revive);
        rows.await?.iter().map(read_entry).collect()
    }

    /// When the next timer of these locations can be claimed.
    pub(crate) async fn next_timer(&self, locations: &[String]) -> Result<Option<i64>> {
        if locations.is_empty() {
            return Ok(None);
        }
        let query = sql("SELECT MIN(ready_ms) FROM timers WHERE is_dead = 0 AND location IN ")
            .add_texts(locations.iter().map(String::as_str));
        let row = self.db.read_one("finding the next timer", query).await?;
        row.map_or(Ok(None), |row| Record::first_int(TABLE, &row))
    }

    /// Lists the timers that can be claimed before a time, the earliest first.
    pub(crate) async fn timers_before(
        &self,
        before_ms: i64,
        limit: i64,
    ) -> Result<Vec<TimerEntry>> {
        let query = sql("SELECT topic, subject, location, ready_ms FROM timers \
             WHERE is_dead = 0 AND ready_ms < $1 ORDER BY ready_ms LIMIT $2")
        .int(before_ms)
        .int(limit);
        self.timer_entries(query).await
    }

    /// The current entries of these timers, without deleted and dead ones.
    pub(crate) async fn timers_among(&self, candidates: &[TimerEntry]) -> Result<Vec<TimerEntry>> {
        if candidates.is_empty() {
            return Ok(Vec::new());
        }
        let query =
            sql("SELECT topic, subject, location, ready_ms FROM timers WHERE is_dead = 0 AND ");
        self.timer_entries(among(query, candidates)).await
    }

    async fn timer_entries(&self, query: Sql) -> Result<Vec<TimerEntry>> {
        let rows = self.db.read("listing timers", query).await?;
        rows.iter().map(read_entry).collect()
    }
}

fn read_entry(row: &AnyRow) -> Result<TimerEntry> {
    let record = Record::new(TABLE, row);
    Ok(TimerEntry {
        topic: record.text("topic")?,
        subject: record.text("subject")?,
        location: record.text("location")?,
        ready_ms: record.int("ready_ms")?,
    })
}

/// Appends `(topic, subject) IN (…)`.
fn among(mut query: Sql, candidates: &[TimerEntry]) -> Sql {
    let mut before = "(topic, subject) IN (VALUES (";
    for candidate in candidates {
        query = query
            .add_next(before)
            .text(&candidate.topic)
            .add_next(", ")
            .text(&candidate.subject)
            .add(")");
        before = ", (";
    }
    query.add(")")
}

/// Appends the condition that this claim is still valid.
fn of_claim(statement: Sql, timer: &Timer) -> Sql {
    statement
        .add_next(" WHERE topic = ")
        .text(&timer.topic)
        .add_next(" AND subject = ")
        .text(&timer.subject)
        .add_next(" AND generation = ")
        .int(timer.generation)
        .add_next(" AND attempts = ")
        .int(timer.attempts)
        .add(" AND is_dead = 0 AND claimed_by IS NOT NULL")
}

fn read(row: &AnyRow) -> Result<Timer> {
    let record = Record::new(TABLE, row);
    Ok(Timer {
        topic: record.text("topic")?,
        subject: record.text("subject")?,
        location: record.text("location")?,
        due_ms: record.int("due_ms")?,
        generation: record.int("generation")?,
        attempts: record.int("attempts")?,
        claimed_until_ms: record.int("ready_ms")?,
        last_error: record.maybe_text("last_error")?,
    })
}
