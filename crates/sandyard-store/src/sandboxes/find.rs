//! Finds and counts sandboxes.

use sandyard_core::{SandboxId, SandboxStatus};

use super::row::{TABLE, columns, read};
use crate::error::Result;
use crate::model::Sandbox;
use crate::sql::{Record, sql};
use crate::store::Store;

const ACTION: &str = "finding a sandbox";

impl Store {
    /// Finds a sandbox by its id.
    pub async fn sandbox(&self, id: &SandboxId) -> Result<Option<Sandbox>> {
        self.sandbox_named(id.as_str()).await
    }

    /// Finds a sandbox by id, else by provider's id, else by alias; only one of `owner`, if given. Finds deleted ones only by id.
    pub async fn find_sandbox(&self, name: &str, owner: Option<&str>) -> Result<Option<Sandbox>> {
        if let Some(sandbox) = self.sandbox_named(name).await?
            && owner.is_none_or(|owner| owner == sandbox.owner)
        {
            return Ok(Some(sandbox));
        }
        let mut query = sql(concat!(
            "SELECT ",
            columns!(),
            " FROM sandboxes WHERE status <> 'deleted' AND (provider_id = $1 OR alias = $1)"
        ))
        .text(name);
        if let Some(owner) = owner {
            query = query.add_next(" AND owner = ").text(owner);
        }
        // Sandboxes of several owners may have the same alias. Without `owner`, the newest one is found.
        let query = query.add(
            " ORDER BY CASE WHEN provider_id = $1 THEN 0 ELSE 1 END, created_ms DESC, id DESC LIMIT 1",
        );
        let row = self.db.read_one(ACTION, query).await?;
        row.as_ref().map(read).transpose()
    }

    async fn sandbox_named(&self, id: &str) -> Result<Option<Sandbox>> {
        let query = sql(concat!(
            "SELECT ",
            columns!(),
            " FROM sandboxes WHERE id = $1"
        ));
        let row = self.db.read_one(ACTION, query.text(id)).await?;
        row.as_ref().map(read).transpose()
    }

    /// Counts the sandboxes of all owners with an alias, without deleted ones.
    pub async fn count_alias(&self, alias: &str) -> Result<i64> {
        let query =
            sql("SELECT COUNT(*) AS total FROM sandboxes WHERE status <> 'deleted' AND alias = $1");
        let row = self.db.read_one(ACTION, query.text(alias)).await?;
        row.as_ref()
            .map_or(Ok(0), |row| Record::new(TABLE, row).int("total"))
    }

    /// Counts sandboxes by status; only those at `location`, if given.
    pub async fn count_sandboxes(
        &self,
        location: Option<&str>,
    ) -> Result<Vec<(SandboxStatus, i64)>> {
        let mut query = sql("SELECT status, COUNT(*) AS total FROM sandboxes");
        if let Some(location) = location {
            query = query.add_next(" WHERE location = ").text(location);
        }
        let rows = self
            .db
            .read("counting sandboxes", query.add(" GROUP BY status"))
            .await?;
        rows.iter()
            .map(|row| {
                let record = Record::new(TABLE, row);
                Ok((record.variant("status")?, record.int("total")?))
            })
            .collect()
    }

    /// Counts sandboxes by provider and status.
    pub async fn count_by_provider(&self) -> Result<Vec<(String, SandboxStatus, i64)>> {
        let query = sql(
            "SELECT provider, status, COUNT(*) AS total FROM sandboxes GROUP BY provider, status",
        );
        let rows = self.db.read("counting sandboxes", query).await?;
        rows.iter()
            .map(|row| {
                let record = Record::new(TABLE, row);
                let provider = record.text("provider")?;
                Ok((provider, record.variant("status")?, record.int("total")?))
            })
            .collect()
    }
}
