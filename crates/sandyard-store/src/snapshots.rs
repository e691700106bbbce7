//! Snapshots and their owners.

use sandyard_core::SandboxId;
use sqlx::any::AnyRow;

use crate::error::Result;
use crate::model::Snapshot;
use crate::sql::{Record, sql};
use crate::store::Store;

const TABLE: &str = "snapshots";

impl Store {
    /// Inserts a snapshot before its template exists. Returns false if the name is taken, or its owner has another snapshot with this alias.
    pub async fn insert_snapshot(&self, location: &str, snapshot: &Snapshot) -> Result<bool> {
        let insert = sql(
            "INSERT INTO snapshots (location, name, owner, sandbox_id, created_ms, alias) VALUES ($1, $2, $3, $4, $5, $6) \
             ON CONFLICT DO NOTHING",
        )
        .text(location)
        .text(&snapshot.name)
        .text(&snapshot.owner)
        .maybe_text(snapshot.sandbox_id.as_ref().map(SandboxId::as_str))
        .int(snapshot.created_ms)
        .maybe_text(snapshot.alias.as_deref());
        Ok(self.db.execute("inserting a snapshot", insert).await? > 0)
    }

    /// Sets the alias of a snapshot. Another snapshot of the owner with this alias loses it.
    pub async fn name_snapshot(
        &self,
        location: &str,
        owner: &str,
        name: &str,
        alias: &str,
    ) -> Result<()> {
        let mut writer = self.db.writer("naming a snapshot").await?;
        let mut tx = writer.begin().await?;
        let take = sql(
            "UPDATE snapshots SET alias = NULL WHERE location = $1 AND owner = $2 AND alias = $3",
        )
        .text(location)
        .text(owner)
        .text(alias);
        tx.execute(take).await?;
        let give = sql("UPDATE snapshots SET alias = $1 WHERE location = $2 AND name = $3")
            .text(alias)
            .text(location)
            .text(name);
        tx.execute(give).await?;
        tx.commit().await
    }

    /// Lets every user start sandboxes from a snapshot, or only its owner.
    pub async fn publish_snapshot(
        &self,
        location: &str,
        name: &str,
        is_public: bool,
    ) -> Result<()> {
        let update = sql("UPDATE snapshots SET is_public = $1 WHERE location = $2 AND name = $3")
            .flag(is_public)
            .text(location)
            .text(name)
            .repeatable();
        self.db.execute("publishing a snapshot", update).await?;
        Ok(())
    }

    /// One snapshot; none if the template is not a snapshot.
    pub async fn snapshot(&self, location: &str, name: &str) -> Result<Option<Snapshot>> {
        let query = sql(
            "SELECT name, owner, alias, sandbox_id, created_ms, is_public FROM snapshots \
             WHERE location = $1 AND name = $2",
        )
        .text(location)
        .text(name);
        let row = self.db.read_one("finding a snapshot", query).await?;
        row.map(|row| read(&row)).transpose()
    }

    /// The owner of a snapshot; none if the template is not a snapshot.
    pub async fn snapshot_owner(&self, location: &str, name: &str) -> Result<Option<String>> {
        let snapshot = self.snapshot(location, name).await?;
        Ok(snapshot.map(|snapshot| snapshot.owner))
    }

    /// The name of the owner's snapshot with an alias.
    pub async fn snapshot_called(
        &self,
        location: &str,
        owner: &str,
        alias: &str,
    ) -> Result<Option<String>> {
        let query =
            sql("SELECT name FROM snapshots WHERE location = $1 AND owner = $2 AND alias = $3")
                .text(location)
                .text(owner)
                .text(alias);
        let row = self.db.read_one("finding a snapshot", query).await?;
        row.map(|row| Record::new(TABLE, &row).text("name"))
            .transpose()
    }

    /// The locations where an owner has a snapshot with this name or alias, then those of a published one with this name, each the newest
    /// first.
    pub async fn snapshot_locations(&self, owner: &str, name: &str) -> Result<Vec<String>> {
        let query = sql(
            "SELECT location FROM snapshots WHERE (owner = $1 AND (name = $2 OR alias = $2)) OR (is_public = 1 AND name = $2) \
             ORDER BY CASE WHEN owner = $1 THEN 0 ELSE 1 END, created_ms DESC, name DESC",
        )
        .text(owner)
        .text(name);
        let rows = self.db.read("finding a snapshot", query).await?;
        rows.iter()
            .map(|row| Record::new(TABLE, row).text("location"))
            .collect()
    }

    /// Lists the snapshots of a location, newest first.
    pub async fn snapshots(&self, location: &str) -> Result<Vec<Snapshot>> {
        let query = sql(
            "SELECT name, owner, alias, sandbox_id, created_ms, is_public FROM snapshots WHERE location = $1 \
             ORDER BY created_ms DESC, name DESC",
        )
        .text(location);
        let rows = self.db.read("listing snapshots", query).await?;
        rows.iter().map(read).collect()
    }

    /// Deletes the row of a snapshot.
    pub async fn delete_snapshot(&self, location: &str, name: &str) -> Result<()> {
        let delete = sql("DELETE FROM snapshots WHERE location = $1 AND name = $2")
            .text(location)
            .text(name)
            .repeatable();
        self.db.execute("deleting a snapshot", delete).await?;
        Ok(())
    }
}

fn read(row: &AnyRow) -> Result<Snapshot> {
    let record = Record::new(TABLE, row);
    Ok(Snapshot {
        name: record.text("name")?,
        owner: record.text("owner")?,
        alias: record.maybe_text("alias")?,
        // An invalid id names no sandbox.
        sandbox_id: record
            .maybe_text("sandbox_id")?
            .and_then(|id| id.parse().ok()),
        created_ms: record.int("created_ms")?,
        is_public: record.flag("is_public")?,
    })
}
