//! Claims: the exclusive right to change a sandbox.

use sandyard_core::SandboxId;

use super::row::{TABLE, columns, read, read_id};
use crate::error::Result;
use crate::model::{ClaimOutcome, Operation};
use crate::sql::{Record, sql};
use crate::store::Store;

const ACTION: &str = "claiming a sandbox";

impl Store {
    /// Claims a sandbox for one operation. Takes over a claim that has ended (`until_ms <= now_ms`). Every operation has a holder of its own:
    /// a holder cannot claim a sandbox twice.
    pub async fn claim_sandbox(
        &self,
        id: &SandboxId,
        operation: Operation,
        holder: &str,
        now_ms: i64,
        until_ms: i64,
    ) -> Result<ClaimOutcome> {
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
            // The other claim may have been released meanwhile. Then the next attempt gets it, or finds another holder.
            if let Some(outcome) = self.conflicting_claim(id, now_ms).await? {
                return Ok(outcome);
            }
        }
    }

    async fn conflicting_claim(&self, id: &SandboxId, now_ms: i64) -> Result<Option<ClaimOutcome>> {
        let query = sql(
            "SELECT claim_operation, claim_holder, claim_until_ms FROM sandboxes WHERE id = $1",
        )
        .text(id.as_str());
        let Some(row) = self.db.read_one(ACTION, query).await? else {
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
        Ok(Some(ClaimOutcome::Busy {
            operation: record.variant("claim_operation")?,
            holder,
            until_ms,
        }))
    }

    /// Extends a claim. Returns false if the holder does not have it any more.
    pub async fn extend_claim(&self, id: &SandboxId, holder: &str, until_ms: i64) -> Result<bool> {
        let extend =
            sql("UPDATE sandboxes SET claim_until_ms = $1 WHERE id = $2 AND claim_holder = $3")
                .int(until_ms)
                .text(id.as_str())
                .text(holder)
                .repeatable();
        Ok(self.db.execute("extending a claim", extend).await? > 0)
    }

    /// Releases a claim without a change.
    pub async fn release_claim(&self, id: &SandboxId, holder: &str) -> Result<()> {
        let release = sql("UPDATE sandboxes SET claim_operation = NULL, claim_holder = NULL, claim_until_ms = NULL \
             WHERE id = $1 AND claim_holder = $2")
        .text(id.as_str())
        .text(holder)
        .repeatable();
        self.db.execute("releasing a claim", release).await?;
        Ok(())
    }

    /// Releases all claims of dead nodes (a holder is `node_id` or `node_id/…`). Returns their sandboxes. By the ids of dead nodes, not of
    /// running ones: a node may have joined since the list was read.
    pub async fn break_claims(&self, dead_nodes: &[String]) -> Result<Vec<SandboxId>> {
        if dead_nodes.is_empty() {
            return Ok(Vec::new());
        }
        let mut broken = sql(
            "UPDATE sandboxes SET claim_operation = NULL, claim_holder = NULL, claim_until_ms = NULL WHERE ",
        );
        let mut before = "claim_holder = ";
        for node in dead_nodes {
            // Not `LIKE`: an id may contain its wildcards, and in SQLite it ignores case.
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
