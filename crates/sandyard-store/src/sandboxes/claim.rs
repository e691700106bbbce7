//! Claims: who may change a sandbox right now.

use sandyard_core::SandboxId;

use super::row::{TABLE, columns, read, read_id};
use crate::error::StoreResult;
use crate::model::{ClaimOutcome, Operation};
use crate::sql::{Record, sql};
use crate::store::Store;

const ACTION: &str = "claiming a sandbox";

impl Store {
    /// Claims a sandbox for one operation; another's claim that ended (`until_ms <= now_ms`) is taken over. A holder that
    /// has it already is refused like any other: each operation has a holder of its own.
    pub async fn claim_sandbox(
        &self,
        id: &SandboxId,
        operation: Operation,
        holder: &str,
        now_ms: i64,
        until_ms: i64,
    ) -> StoreResult<ClaimOutcome> {
        loop {
            let claim = sql(concat!(
                "UPDATE sandboxes SET claim_operation = $1, claim_holder = $2, claim_until_ms = $3 \
                 WHERE id = $4 AND (claim_holder IS NULL OR claim_until_ms <= $5) RETURNING ",
                columns!()
            ))
            .variant(&operation)
            .text(holder)
            .int(until_ms)
            .text(id.as_str())
            .int(now_ms);
            if let Some(row) = self.db.write(ACTION, claim).await?.first() {
                return Ok(ClaimOutcome::Claimed(Box::new(read(row)?)));
            }
            // Whoever had it may have let it go meanwhile: then the next try gets it, or meets another winner.
            if let Some(outcome) = self.claim_in_the_way(id, now_ms).await? {
                return Ok(outcome);
            }
        }
    }

    async fn claim_in_the_way(
        &self,
        id: &SandboxId,
        now_ms: i64,
    ) -> StoreResult<Option<ClaimOutcome>> {
        let look = sql(
            "SELECT claim_operation, claim_holder, claim_until_ms FROM sandboxes WHERE id = $1",
        )
        .text(id.as_str());
        let Some(row) = self.db.read_one(ACTION, look).await? else {
            return Ok(Some(ClaimOutcome::Missing));
        };
        let record = Record::new(TABLE, &row);
        let Some(holder) = record.maybe_text("claim_holder")? else {
            return Ok(None);
        };
        let until_ms = record.int("claim_until_ms")?;
        if until_ms <= now_ms {
            return Ok(None);
        }
        Ok(Some(ClaimOutcome::Held {
            operation: record.variant("claim_operation")?,
            holder,
            until_ms,
        }))
    }

    /// Lengthens one's own claim; false: it is not ours any more.
    pub async fn extend_claim(
        &self,
        id: &SandboxId,
        holder: &str,
        until_ms: i64,
    ) -> StoreResult<bool> {
        let extend =
            sql("UPDATE sandboxes SET claim_until_ms = $1 WHERE id = $2 AND claim_holder = $3")
                .int(until_ms)
                .text(id.as_str())
                .text(holder)
                .repeatable();
        Ok(self.db.execute("lengthening a claim", extend).await? > 0)
    }

    /// Ends one's own claim without a change.
    pub async fn release_claim(&self, id: &SandboxId, holder: &str) -> StoreResult<()> {
        let release = sql("UPDATE sandboxes SET claim_operation = NULL, claim_holder = NULL, claim_until_ms = NULL \
             WHERE id = $1 AND claim_holder = $2")
        .text(id.as_str())
        .text(holder)
        .repeatable();
        self.db.execute("ending a claim", release).await?;
        Ok(())
    }

    /// Ends all claims of nodes that are known to be dead (a holder is `node_id` or `node_id/…`); returns which sandboxes
    /// those were. By the names of the dead, never of the living: a node may have joined since the list was read.
    pub async fn break_claims(&self, dead_nodes: &[String]) -> StoreResult<Vec<SandboxId>> {
        if dead_nodes.is_empty() {
            return Ok(Vec::new());
        }
        let mut broken = sql(
            "UPDATE sandboxes SET claim_operation = NULL, claim_holder = NULL, claim_until_ms = NULL WHERE ",
        );
        let mut before = "claim_holder = ";
        for node in dead_nodes {
            // No `LIKE`: a name may hold its wildcards, and SQLite's takes `A` for `a`.
            let prefix = format!("{node}/");
            broken = broken
                .add_next(before)
                .text(node)
                .add_next(" OR substr(claim_holder, 1, CAST(")
                .int(prefix.chars().count() as i64)
                // PostgreSQL's `substr` counts in 32 bits.
                .add_next(" AS INTEGER)) = ")
                .text(&prefix);
            before = " OR claim_holder = ";
        }
        let rows = self
            .db
            .write(
                "breaking the claims of dead nodes",
                broken.add(" RETURNING id"),
            )
            .await?;
        rows.iter()
            .map(|row| read_id(Record::new(TABLE, row).text("id")?))
            .collect()
    }
}
