//! Volumes. Starting to delete a volume and mounting it in a sandbox exclude each other.

use sandyard_core::SandboxId;
use sqlx::any::AnyRow;

use crate::db::{Engine, Tx};
use crate::error::{Result, StoreError};
use crate::model::{MountedVolume, Volume, VolumeInsert, VolumeRemoval, VolumeStatus};
use crate::sql::{Record, Sql, json_pair, sql};
use crate::store::Store;

const TABLE: &str = "volumes";
/// Most sandboxes listed of those that have a volume.
const MAX_LISTED: i64 = 5;

macro_rules! columns {
    () => {
        "id, owner, name, location, status, size_bytes, token, created_ms"
    };
}

impl Store {
    /// Inserts a volume as `creating`, unless its name is taken or its owner's quota is reached.
    pub async fn insert_volume(&self, volume: &Volume, quota: Option<i64>) -> Result<VolumeInsert> {
        let mut writer = self.db.writer("inserting a volume").await?;
        let mut tx = writer.begin().await?;
        // Serialises the inserts of one owner, so that the counts below stay valid.
        self.lock_owner(&mut tx, &volume.owner).await?;
        let check = sql("SELECT \
             (SELECT COUNT(*) FROM volumes WHERE owner = $1 AND name = $2) AS names, \
             (SELECT COUNT(*) FROM volumes WHERE owner = $1) AS total")
        .text(&volume.owner)
        .text(&volume.name);
        let rows = tx.rows(check).await?;
        if let Some(row) = rows.first() {
            let record = Record::new(TABLE, row);
            if record.int("names")? > 0 {
                return Ok(VolumeInsert::NameTaken);
            }
            let count = record.int("total")?;
            if quota.is_some_and(|quota| count >= quota) {
                return Ok(VolumeInsert::OverQuota { count });
            }
        }
        tx.execute(insert(volume)).await?;
        tx.commit().await?;
        Ok(VolumeInsert::Inserted)
    }

    /// Finds a volume of any owner by its id.
    pub async fn volume(&self, id: &str) -> Result<Option<Volume>> {
        let query = sql(concat!(
            "SELECT ",
            columns!(),
            " FROM volumes WHERE id = $1"
        ));
        self.one_volume(query.text(id)).await
    }

    /// Finds an owner's volume by its name.
    pub async fn volume_named(&self, owner: &str, name: &str) -> Result<Option<Volume>> {
        let query = sql(concat!(
            "SELECT ",
            columns!(),
            " FROM volumes WHERE owner = $1 AND name = $2"
        ));
        self.one_volume(query.text(owner).text(name)).await
    }

    /// Lists volumes by name; only those of `owner`, if given.
    pub async fn volumes(&self, owner: Option<&str>) -> Result<Vec<Volume>> {
        let mut query = sql(concat!("SELECT ", columns!(), " FROM volumes"));
        if let Some(owner) = owner {
            query = query.add_next(" WHERE owner = ").text(owner);
        }
        self.list_volumes(query).await
    }

    /// Lists the volumes of a location that are `deleting`, or have been `creating` since before a time.
    pub async fn unfinished_volumes(&self, location: &str, before_ms: i64) -> Result<Vec<Volume>> {
        let query = sql(concat!(
            "SELECT ",
            columns!(),
            " FROM volumes WHERE location = $1 \
             AND (status = 'deleting' OR (status = 'creating' AND created_ms < $2))"
        ));
        self.list_volumes(query.text(location).int(before_ms)).await
    }

    /// Marks a volume as `ready`. Returns false if it is not `creating` any more.
    pub async fn finish_volume(&self, id: &str) -> Result<bool> {
        let update = sql("UPDATE volumes SET status = $1 WHERE id = $2 AND status = 'creating'")
            .variant(&VolumeStatus::Ready)
            .text(id);
        Ok(self.db.execute("finishing a volume", update).await? > 0)
    }

    /// Marks a volume as `deleting`, unless a sandbox that is not deleted has it.
    pub async fn begin_volume_removal(&self, id: &str) -> Result<VolumeRemoval> {
        let mut writer = self.db.writer("removing a volume").await?;
        let mut tx = writer.begin().await?;
        // First, so that no sandbox can get it after the query: see `missing_volume`.
        let update = sql("UPDATE volumes SET status = $1 WHERE id = $2")
            .variant(&VolumeStatus::Deleting)
            .text(id);
        if tx.execute(update).await? == 0 {
            return Ok(VolumeRemoval::Missing);
        }
        let query = sql("SELECT id FROM sandboxes WHERE status <> 'deleted' AND replace(mounts, $1, '') <> mounts \
             ORDER BY created_ms, id LIMIT $2")
        .text(&json_pair("volume_id", id))
        .int(MAX_LISTED);
        let rows = tx.rows(query).await?;
        if !rows.is_empty() {
            let ids = rows.iter().map(read_sandbox_id);
            return Ok(VolumeRemoval::InUse(ids.collect::<Result<_>>()?));
        }
        tx.commit().await?;
        Ok(VolumeRemoval::Started)
    }

    /// Deletes the row of a volume.
    pub async fn forget_volume(&self, id: &str) -> Result<()> {
        let delete = sql("DELETE FROM volumes WHERE id = $1 AND status = 'deleting'")
            .text(id)
            .repeatable();
        self.db.execute("deleting a volume", delete).await?;
        Ok(())
    }

    /// Finds a volume among these that is not `ready`. The others stay `ready` until the transaction ends.
    pub(crate) async fn missing_volume(
        &self,
        tx: &mut Tx<'_>,
        mounts: &[MountedVolume],
    ) -> Result<Option<String>> {
        for mount in mounts {
            let mut query = sql("SELECT status FROM volumes WHERE id = $1 AND status = 'ready'")
                .text(&mount.volume_id);
            if self.db.engine() == Engine::Postgres {
                query = query.add(" FOR SHARE");
            }
            if tx.rows(query).await?.is_empty() {
                return Ok(Some(mount.volume_id.clone()));
            }
        }
        Ok(None)
    }

    async fn one_volume(&self, query: Sql) -> Result<Option<Volume>> {
        let row = self.db.read_one("finding a volume", query).await?;
        row.as_ref().map(read).transpose()
    }

    async fn list_volumes(&self, query: Sql) -> Result<Vec<Volume>> {
        let rows = self.db.read("listing volumes", query).await?;
        let mut volumes = rows.iter().map(read).collect::<Result<Vec<_>>>()?;
        // Sorted here, because the engines have different collations.
        volumes.sort_by(|one, other| (&one.name, &one.owner).cmp(&(&other.name, &other.owner)));
        Ok(volumes)
    }
}

fn insert(volume: &Volume) -> Sql {
    sql(concat!(
        "INSERT INTO volumes (",
        columns!(),
        ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
    ))
    .text(&volume.id)
    .text(&volume.owner)
    .text(&volume.name)
    .text(&volume.location)
    .variant(&volume.status)
    .int(volume.size_bytes)
    .text(&volume.token)
    .int(volume.created_ms)
}

fn read(row: &AnyRow) -> Result<Volume> {
    let record = Record::new(TABLE, row);
    Ok(Volume {
        id: record.text("id")?,
        owner: record.text("owner")?,
        name: record.text("name")?,
        location: record.text("location")?,
        status: record.variant("status")?,
        size_bytes: record.int("size_bytes")?,
        token: record.text("token")?,
        created_ms: record.int("created_ms")?,
    })
}

fn read_sandbox_id(row: &AnyRow) -> Result<SandboxId> {
    let id = Record::new("sandboxes", row).text("id")?;
    id.parse().map_err(|_| StoreError::Corrupt {
        table: "sandboxes",
        detail: format!("`{id}` is not a sandbox id"),
    })
}
