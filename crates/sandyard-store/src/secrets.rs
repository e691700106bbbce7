//! Secrets, sealed.

use sqlx::any::AnyRow;

use crate::error::{StoreError, StoreResult};
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
    /// Keeps a secret, or replaces the owner's one of this name; when it was first kept stays. Returns it as it is now.
    pub async fn put_secret(&self, secret: &Secret) -> StoreResult<Secret> {
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
        let rows = self.db.write("keeping a secret", put).await?;
        rows.first().map_or_else(
            || {
                Err(StoreError::Corrupt {
                    table: TABLE,
                    detail: "a secret was kept and is not there".to_owned(),
                })
            },
            read,
        )
    }

    /// Lists the secrets that an owner may use: its own and the shared ones.
    pub async fn secrets_for(&self, owner: &str) -> StoreResult<Vec<Secret>> {
        let query = sql(concat!(
            "SELECT ",
            columns!(),
            " FROM secrets WHERE owner = $1 OR is_shared = 1"
        ));
        self.list_secrets(query.text(owner)).await
    }

    /// Lists everybody's secrets.
    pub async fn all_secrets(&self) -> StoreResult<Vec<Secret>> {
        let query = sql(concat!("SELECT ", columns!(), " FROM secrets"));
        self.list_secrets(query).await
    }

    /// Forgets a secret; false: there was none.
    pub async fn delete_secret(&self, owner: &str, name: &str) -> StoreResult<bool> {
        let delete = sql("DELETE FROM secrets WHERE owner = $1 AND name = $2")
            .text(owner)
            .text(name);
        Ok(self.db.execute("forgetting a secret", delete).await? > 0)
    }

    /// By name, then by age.
    async fn list_secrets(&self, query: Sql) -> StoreResult<Vec<Secret>> {
        let rows = self.db.read("listing secrets", query).await?;
        let mut secrets = rows.iter().map(read).collect::<StoreResult<Vec<_>>>()?;
        // Sorted here: the engines do not agree on what comes after what.
        secrets.sort_by(|one, other| {
            let by_name = one.name.cmp(&other.name);
            by_name
                .then(one.created_ms.cmp(&other.created_ms))
                .then(one.owner.cmp(&other.owner))
        });
        Ok(secrets)
    }
}

fn read(row: &AnyRow) -> StoreResult<Secret> {
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
