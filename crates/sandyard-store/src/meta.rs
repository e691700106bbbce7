//! Values that all servers share, and leases that one of them holds.

use crate::error::{Result, StoreError};
use crate::sql::{Record, sql};
use crate::store::Store;

impl Store {
    /// A value that all servers share, such as the secret of tokens. Returns the stored value, or stores `value` first.
    pub async fn meta_or_insert(&self, name: &str, value: &str) -> Result<String> {
        if let Some(value) = self.meta(name).await? {
            return Ok(value);
        }
        let insert =
            sql("INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING")
                .text(name)
                .text(value)
                .repeatable();
        self.db.execute("storing a shared value", insert).await?;
        // Another server may have been first.
        self.meta(name).await?.ok_or_else(|| StoreError::Corrupt {
            table: "meta",
            detail: format!("`{name}` is missing"),
        })
    }

    /// Reads a shared value.
    pub async fn meta(&self, name: &str) -> Result<Option<String>> {
        let query = sql("SELECT value FROM meta WHERE name = $1").text(name);
        let row = self.db.read_one("reading a shared value", query).await?;
        row.map(|row| Record::new("meta", &row).text("value"))
            .transpose()
    }

    /// Takes or extends a named lease. Returns true if `holder` has it until `until_ms`.
    pub async fn take_lease(
        &self,
        name: &str,
        holder: &str,
        now_ms: i64,
        until_ms: i64,
    ) -> Result<bool> {
        let take = sql("INSERT INTO leases (name, holder, until_ms) VALUES ($1, $2, $3) \
             ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_ms = excluded.until_ms \
             WHERE leases.holder = excluded.holder OR leases.until_ms <= $4")
        .text(name)
        .text(holder)
        .int(until_ms)
        .int(now_ms)
        .repeatable();
        Ok(self.db.execute("taking a lease", take).await? > 0)
    }
}
