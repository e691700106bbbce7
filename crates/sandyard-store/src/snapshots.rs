//! Templates that users made of their sandboxes, and whose they are.

use crate::error::StoreResult;
use crate::sql::{Record, sql};
use crate::store::Store;

const TABLE: &str = "snapshots";

impl Store {
    /// Remembers whose a snapshot is, before it is made; false: the name is taken.
    pub async fn insert_snapshot(
        &self,
        location: &str,
        name: &str,
        owner: &str,
        now_ms: i64,
    ) -> StoreResult<bool> {
        let insert = sql(
            "INSERT INTO snapshots (location, name, owner, created_ms) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (location, name) DO NOTHING",
        )
        .text(location)
        .text(name)
        .text(owner)
        .int(now_ms);
        Ok(self.db.execute("remembering a snapshot", insert).await? > 0)
    }

    /// Whose a snapshot is; none: it is no user's.
    pub async fn snapshot_owner(&self, location: &str, name: &str) -> StoreResult<Option<String>> {
        let query = sql("SELECT owner FROM snapshots WHERE location = $1 AND name = $2")
            .text(location)
            .text(name);
        let row = self.db.read_one("finding a snapshot", query).await?;
        row.map(|row| Record::new(TABLE, &row).text("owner"))
            .transpose()
    }

    /// All snapshots of a place: name and owner.
    pub async fn snapshots(&self, location: &str) -> StoreResult<Vec<(String, String)>> {
        let query = sql("SELECT name, owner FROM snapshots WHERE location = $1").text(location);
        let rows = self.db.read("listing snapshots", query).await?;
        rows.iter()
            .map(|row| {
                let record = Record::new(TABLE, row);
                Ok((record.text("name")?, record.text("owner")?))
            })
            .collect()
    }

    /// Forgets whose a snapshot was.
    pub async fn delete_snapshot(&self, location: &str, name: &str) -> StoreResult<()> {
        let delete = sql("DELETE FROM snapshots WHERE location = $1 AND name = $2")
            .text(location)
            .text(name)
            .repeatable();
        self.db.execute("forgetting a snapshot", delete).await?;
        Ok(())
    }
}
