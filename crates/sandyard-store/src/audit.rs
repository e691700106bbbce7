//! The audit log.

use sqlx::any::AnyRow;

use crate::error::Result;
use crate::events::number;
use crate::model::{AuditEntry, NewAuditEntry};
use crate::sql::{Record, sql};
use crate::store::Store;

/// Most rows in one statement.
const CHUNK: usize = 500;
/// Most entries in one list.
const MAX_LIMIT: usize = 1000;
const TABLE: &str = "audit";

impl Store {
    /// Adds entries to the audit log.
    pub async fn add_audit(&self, entries: &[NewAuditEntry]) -> Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut writer = self.db.writer("adding audit entries").await?;
        let mut tx = writer.begin().await?;
        let mut seq = number(&mut tx, TABLE, entries.len()).await?.unwrap_or(0);
        for chunk in entries.chunks(CHUNK) {
            let mut insert = sql(
                "INSERT INTO audit (seq, at_ms, actor, via, action, target, status, request_id, address) VALUES ",
            );
            let mut before = "(";
            for entry in chunk {
                insert = insert
                    .add_next(before)
                    .int(seq)
                    .add_next(", ")
                    .int(entry.at_ms)
                    .add_next(", ")
                    .text(&entry.actor)
                    .add_next(", ")
                    .text(&entry.via)
                    .add_next(", ")
                    .text(&entry.action)
                    .add_next(", ")
                    .maybe_text(entry.target.as_deref())
                    .add_next(", ")
                    .int(entry.status)
                    .add_next(", ")
                    .text(&entry.request_id)
                    .add_next(", ")
                    .maybe_text(entry.address.as_deref())
                    .add(")");
                before = ", (";
                seq += 1;
            }
            tx.execute(insert).await?;
        }
        tx.commit().await
    }

    /// Lists audit entries, newest first: only those before `before_seq` and by `actor`, if given.
    pub async fn audit(
        &self,
        actor: Option<&str>,
        before_seq: Option<i64>,
        limit: usize,
    ) -> Result<Vec<AuditEntry>> {
        let mut query = sql("SELECT seq, at_ms, actor, via, action, target, status, request_id, address FROM audit WHERE seq < $1")
            .int(before_seq.unwrap_or(i64::MAX));
        if let Some(actor) = actor {
            query = query.add_next(" AND actor = ").text(actor);
        }
        let query = query
            .add_next(" ORDER BY seq DESC LIMIT ")
            .int(limit.min(MAX_LIMIT) as i64);
        let rows = self.db.read("listing audit entries", query).await?;
        rows.iter().map(read).collect()
    }
}

fn read(row: &AnyRow) -> Result<AuditEntry> {
    let record = Record::new(TABLE, row);
    Ok(AuditEntry {
        seq: record.int("seq")?,
        entry: NewAuditEntry {
            at_ms: record.int("at_ms")?,
            actor: record.text("actor")?,
            via: record.text("via")?,
            action: record.text("action")?,
            target: record.maybe_text("target")?,
            status: record.int("status")?,
            request_id: record.text("request_id")?,
            address: record.maybe_text("address")?,
        },
    })
}
