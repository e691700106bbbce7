//! Updates and deletes rows of many sandboxes at once.

use std::collections::BTreeMap;

use sandyard_core::SandboxId;

use super::row::{TABLE, read_id};
use crate::error::Result;
use crate::sql::{Record, sql};
use crate::store::Store;

/// Most rows in one statement: both engines limit the number of values.
const CHUNK: usize = 1000;

impl Store {
    /// Sets activity that lies in the future to now, because the clock was set back.
    pub async fn rewind_activity(&self, now_ms: i64) -> Result<()> {
        let rewind = sql("UPDATE sandboxes SET last_activity_ms = $1 WHERE last_activity_ms > $1")
            .int(now_ms)
            .repeatable();
        self.db
            .execute("resetting activity in the future", rewind)
            .await?;
        Ok(())
    }

    /// Records when sandboxes were last used. Never sets a time back.
    pub async fn touch_sandboxes(&self, used: &[(SandboxId, i64)]) -> Result<()> {
        let mut latest = BTreeMap::new();
        for (id, at_ms) in used {
            let latest_ms = latest.entry(id).or_insert(*at_ms);
            *latest_ms = (*latest_ms).max(*at_ms);
        }
        let latest: Vec<_> = latest.into_iter().collect();
        for chunk in latest.chunks(CHUNK) {
            let mut touch = sql("WITH used (id, at_ms) AS (VALUES ");
            let mut before = "(";
            for (id, at_ms) in chunk {
                touch = touch
                    .add_next(before)
                    .text(id.as_str())
                    .add_next(", ")
                    .int(*at_ms)
                    .add(")");
                before = ", (";
            }
            let touch = touch
                .add(
                    ") UPDATE sandboxes SET last_activity_ms = used.at_ms FROM used \
                     WHERE sandboxes.id = used.id AND sandboxes.last_activity_ms < used.at_ms",
                )
                .repeatable();
            self.db.execute("recording activity", touch).await?;
        }
        Ok(())
    }

    /// Lists the sandboxes of a location that have no timer, not even a dead one.
    pub async fn sandboxes_without_timer(&self, location: &str) -> Result<Vec<SandboxId>> {
        let query = sql("SELECT id FROM sandboxes WHERE location = $1 AND status <> 'deleted' \
             AND NOT EXISTS (SELECT 1 FROM timers WHERE topic = 'sandbox' AND subject = sandboxes.id)")
        .text(location);
        let rows = self
            .db
            .read("finding sandboxes without a timer", query)
            .await?;
        rows.iter()
            .map(|row| read_id(Record::new(TABLE, row).text("id")?))
            .collect()
    }

    /// Frees an idempotency key whose create failed.
    pub async fn forget_idempotency(&self, owner: &str, key: &str, id: &SandboxId) -> Result<()> {
        let forget =
            sql("DELETE FROM idempotency WHERE owner = $1 AND idem_key = $2 AND sandbox_id = $3")
                .text(owner)
                .text(key)
                .text(id.as_str());
        self.db
            .execute("freeing an idempotency key", forget.repeatable())
            .await?;
        Ok(())
    }

    /// Deletes sessions and keys that were revoked before a time, and keys that expired before it. Returns the number of rows.
    /// [`Self::purge_history`] deletes expired sessions.
    pub async fn purge_access(&self, before_ms: i64) -> Result<u64> {
        const ACTION: &str = "deleting old sessions and keys";
        let sessions = sql("DELETE FROM sessions WHERE revoked_ms < $1");
        let sessions = self
            .db
            .execute(ACTION, sessions.int(before_ms).repeatable())
            .await?;
        let keys = sql("DELETE FROM api_keys WHERE expires_ms < $1 OR revoked_ms < $1");
        let keys = self
            .db
            .execute(ACTION, keys.int(before_ms).repeatable())
            .await?;
        Ok(sessions + keys)
    }

    /// Deletes the rows of sandboxes that were deleted before a time (their events stay), and older idempotency keys. Returns the number of
    /// sandboxes.
    pub async fn purge_deleted(&self, before_ms: i64) -> Result<u64> {
        const ACTION: &str = "deleting the rows of deleted sandboxes";
        let keys = sql("DELETE FROM idempotency WHERE created_ms < $1").int(before_ms);
        self.db.execute(ACTION, keys.repeatable()).await?;
        let rows = sql("DELETE FROM sandboxes WHERE status = 'deleted' AND deleted_ms < $1");
        self.db.execute(ACTION, rows.int(before_ms)).await
    }
}
