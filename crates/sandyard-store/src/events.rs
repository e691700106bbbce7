//! Events of sandboxes.

use sandyard_core::SandboxId;
use sqlx::any::AnyRow;

use crate::db::Tx;
use crate::error::{Result, StoreError};
use crate::model::{Event, EventFilter, NewEvent};
use crate::sql::{Record, json_pair, sql};
use crate::store::Store;

/// Most rows in one statement.
const CHUNK: usize = 500;
/// Most events in one list.
const MAX_LIMIT: usize = 1000;
/// Rows deleted in one statement: it blocks other writers and must not reach the statement timeout.
const PURGE_CHUNK: i64 = 5_000;
const TABLE: &str = "events";

impl Store {
    /// Adds events. Returns the `seq` of the last one; 0 if there were none.
    pub async fn add_events(&self, events: &[NewEvent]) -> Result<i64> {
        if events.is_empty() {
            return Ok(0);
        }
        let mut writer = self.db.writer("adding events").await?;
        let mut tx = writer.begin().await?;
        let last = add(&mut tx, events).await?;
        tx.commit().await?;
        Ok(last)
    }

    /// Lists events, oldest first.
    pub async fn events(&self, filter: &EventFilter) -> Result<Vec<Event>> {
        let mut query = sql(
            "SELECT seq, sandbox_id, owner, at_ms, kind, actor, data FROM events WHERE seq > $1",
        )
        .int(filter.after_seq.unwrap_or(0));
        if let Some(id) = &filter.sandbox_id {
            query = query.add_next(" AND sandbox_id = ").text(id.as_str());
        }
        if let Some(owner) = &filter.owner {
            query = query.add_next(" AND owner = ").text(owner);
        }
        if !filter.kinds.is_empty() {
            let kinds = filter.kinds.iter().map(String::as_str);
            query = query.add(" AND kind IN ").add_texts(kinds);
        }
        if !filter.except_kinds.is_empty() {
            let kinds = filter.except_kinds.iter().map(String::as_str);
            query = query.add(" AND kind NOT IN ").add_texts(kinds);
        }
        for (name, value) in &filter.data {
            query = query
                .add_next(" AND replace(data, ")
                .text(&json_pair(name, value))
                .add(", '') <> data");
        }
        let limit = match filter.limit {
            0 => MAX_LIMIT,
            limit => limit.min(MAX_LIMIT),
        };
        let order = if filter.is_tail {
            " ORDER BY seq DESC LIMIT "
        } else {
            " ORDER BY seq LIMIT "
        };
        let query = query.add_next(order).int(limit as i64);
        let rows = self.db.read("listing events", query).await?;
        let mut events = rows.iter().map(read).collect::<Result<Vec<_>>>()?;
        if filter.is_tail {
            events.reverse();
        }
        Ok(events)
    }

    /// Deletes events and audit entries from before a time, and sessions that expired before it. Returns the number of rows.
    pub async fn purge_history(&self, before_ms: i64) -> Result<u64> {
        let mut count = 0;
        for purge in [
            "DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE at_ms < $1 LIMIT $2)",
            "DELETE FROM audit WHERE seq IN (SELECT seq FROM audit WHERE at_ms < $1 LIMIT $2)",
            "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE expires_ms < $1 LIMIT $2)",
        ] {
            loop {
                let purge = sql(purge).int(before_ms).int(PURGE_CHUNK);
                let deleted = self.db.execute("deleting old history", purge).await?;
                if deleted == 0 {
                    break;
                }
                count += deleted;
            }
        }
        Ok(count)
    }
}

/// Adds events within a transaction. Returns the `seq` of the last one.
pub(crate) async fn add(tx: &mut Tx<'_>, events: &[NewEvent]) -> Result<i64> {
    let Some(first) = number(tx, TABLE, events.len()).await? else {
        return Ok(0);
    };
    let mut seq = first;
    for chunk in events.chunks(CHUNK) {
        let mut insert =
            sql("INSERT INTO events (seq, sandbox_id, owner, at_ms, kind, actor, data) VALUES ");
        let mut before = "(";
        for event in chunk {
            insert = insert
                .add_next(before)
                .int(seq)
                .add_next(", ")
                .text(event.sandbox_id.as_str())
                .add_next(", ")
                .text(&event.owner)
                .add_next(", ")
                .int(event.at_ms)
                .add_next(", ")
                .text(&event.kind)
                .add_next(", ")
                .text(&event.actor)
                .add_next(", ")
                .json(&event.data)
                .add(")");
            before = ", (";
            seq += 1;
        }
        tx.execute(insert).await?;
    }
    Ok(seq - 1)
}

/// Takes the next `count` numbers of a counter. Returns the first one. Other transactions wait until the commit, so numbers become visible
/// in their order.
pub(crate) async fn number(
    tx: &mut Tx<'_>,
    counter: &'static str,
    count: usize,
) -> Result<Option<i64>> {
    if count == 0 {
        return Ok(None);
    }
    let count = count as i64;
    let take = sql("UPDATE counters SET value = value + $1 WHERE name = $2 RETURNING value")
        .int(count)
        .text(counter);
    let rows = tx.rows(take).await?;
    let last = match rows.first() {
        Some(row) => Record::first_int("counters", row)?,
        None => None,
    };
    let last = last.ok_or_else(|| StoreError::Corrupt {
        table: "counters",
        detail: format!("`{counter}` is missing"),
    })?;
    Ok(Some(last - count + 1))
}

fn read(row: &AnyRow) -> Result<Event> {
    let record = Record::new(TABLE, row);
    let id = record.text("sandbox_id")?;
    Ok(Event {
        seq: record.int("seq")?,
        sandbox_id: id
            .parse::<SandboxId>()
            .map_err(|error| StoreError::Corrupt {
                table: TABLE,
                detail: format!("`sandbox_id`: {error}"),
            })?,
        owner: record.text("owner")?,
        at_ms: record.int("at_ms")?,
        kind: record.text("kind")?,
        actor: record.text("actor")?,
        data: record.json("data")?,
    })
}
