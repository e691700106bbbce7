//! Secrets, with encrypted values.

use sqlx::any::AnyRow;

use crate::error::{Result, StoreError};
use crate::model::Secret;
use crate::sql::{Record, Sql, sql};
use crate::store::Store;

const TABLE: &str = "secrets";

macro_rules! columns {
    () => {
        "owner, name, sealed, hosts, placeholder, is_shared, created_ms, updated_ms"
    };
}

impl Store {
    /// Inserts a secret, or replaces the owner's secret of this name and keeps its creation time. Returns the row.
    pub async fn put_secret(&self, secret: &Secret) -> Result<Secret> {
        let put = sql(concat!(
            "INSERT INTO secrets (",
            columns!(),
            ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (owner, name) DO UPDATE SET \
             sealed = excluded.sealed, hosts = excluded.hosts, placeholder = excluded.placeholder, \
             is_shared = excluded.is_shared, updated_ms = excluded.updated_ms RETURNING ",
            columns!()
        ))
        .text(&secret.owner)
        .text(&secret.name)
        .text(&secret.sealed)
        .json(&secret.hosts)
        .text(&secret.placeholder)
        .flag(secret.is_shared)
        .int(secret.created_ms)
        .int(secret.updated_ms)
        .repeatable();
        let rows = self.db.write("storing a secret", put).await?;
        rows.first().map_or_else(
            || {
                Err(StoreError::Corrupt {
                    table: TABLE,
                    detail: "the stored secret is missing".to_owned(),
                })
            },
            read,
        )
    }

    /// Lists the secrets that an owner may use: its own and shared ones.
    pub async fn secrets_for(&self, owner: &str) -> Result<Vec<Secret>> {
        let query = sql(concat!(
            "SELECT ",
            columns!(),
            " FROM secrets WHERE owner = $1 OR is_shared = 1"
        ));
        self.list_secrets(query.text(owner)).await
    }

    /// Lists the secrets of all owners.
    pub async fn all_secrets(&self) -> Result<Vec<Secret>> {
        let query = sql(concat!("SELECT ", columns!(), " FROM secrets"));
        self.list_secrets(query).await
    }

    /// Deletes a secret. Returns false if there was none.
    pub async fn delete_secret(&self, owner: &str, name: &str) -> Result<bool> {
        let delete = sql("DELETE FROM secrets WHERE owner = $1 AND name = $2")
            .text(owner)
            .text(name);
        Ok(self.db.execute("deleting a secret", delete).await? > 0)
    }

    /// Sorted by name, then by age.
    async fn list_secrets(&self, query: Sql) -> Result<Vec<Secret>> {
        let rows = self.db.read("listing secrets", query).await?;
        let mut secrets = rows.iter().map(read).collect::<Result<Vec<_>>>()?;
        // Sorted here, because the engines have different collations.
        secrets.sort_by(|one, other| {
            let by_name = one.name.cmp(&other.name);
            by_name
                .then(one.created_ms.cmp(&other.created_ms))
                .then(one.owner.cmp(&other.owner))
        });
        Ok(secrets)
    }
}

fn read(row: &AnyRow) -> Result<Secret> {
    let record = Record::new(TABLE, row);
    Ok(Secret {
        owner: record.text("owner")?,
        name: record.text("name")?,
        sealed: record.text("sealed")?,
        hosts: record.json("hosts")?,
        placeholder: record.text("placeholder")?,
        is_shared: record.flag("is_shared")?,
        created_ms: record.int("created_ms")?,
        updated_ms: record.int("updated_ms")?,
    })
}
