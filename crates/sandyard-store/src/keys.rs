//! API keys.

use sqlx::any::AnyRow;

use crate::error::Result;
use crate::model::{ApiKey, NewApiKey, User};
use crate::sql::{Record, sql};
use crate::store::Store;
use crate::users::{self, user_columns};

macro_rules! columns {
    () => {
        "api_keys.id, api_keys.owner, api_keys.name, api_keys.mask, api_keys.scopes, api_keys.created_ms, \
         api_keys.expires_ms, api_keys.last_used_ms, api_keys.revoked_ms"
    };
}

impl Store {
    /// Inserts a key. Returns false if a key with this hash or id exists.
    pub async fn insert_key(&self, key: &NewApiKey) -> Result<bool> {
        let NewApiKey { key, hash } = key;
        let insert = sql("INSERT INTO api_keys (id, owner, name, mask, scopes, hash, created_ms, expires_ms, last_used_ms, revoked_ms) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING")
        .text(&key.id)
        .text(&key.owner)
        .text(&key.name)
        .text(&key.mask)
        .json(&key.scopes)
        .text(hash)
        .int(key.created_ms)
        .maybe_int(key.expires_ms)
        .maybe_int(key.last_used_ms)
        .maybe_int(key.revoked_ms);
        Ok(self.db.execute("inserting a key", insert).await? > 0)
    }

    /// Finds a key by its hash, with its owner.
    pub async fn key_by_hash(&self, hash: &str) -> Result<Option<(ApiKey, User)>> {
        let query = sql(concat!(
            "SELECT ",
            columns!(),
            ", ",
            user_columns!(),
            " FROM api_keys JOIN users ON users.name = api_keys.owner WHERE api_keys.hash = $1"
        ));
        let row = self.db.read_one("finding a key", query.text(hash)).await?;
        row.map(|row| Ok((read(&row)?, users::read(&row)?)))
            .transpose()
    }

    /// Lists keys, newest first; only those of `owner`, if given.
    pub async fn keys(&self, owner: Option<&str>) -> Result<Vec<ApiKey>> {
        let mut query = sql(concat!("SELECT ", columns!(), " FROM api_keys"));
        if let Some(owner) = owner {
            query = query.add_next(" WHERE owner = ").text(owner);
        }
        let query = query.add(" ORDER BY created_ms DESC, id DESC");
        let rows = self.db.read("listing keys", query).await?;
        rows.iter().map(read).collect()
    }

    /// Revokes a key; only one of `owner`, if given. Returns false if there is none. Revoking it again keeps the first time.
    pub async fn revoke_key(&self, id: &str, owner: Option<&str>, now_ms: i64) -> Result<bool> {
        let mut revoke =
            sql("UPDATE api_keys SET revoked_ms = COALESCE(revoked_ms, $1) WHERE id = $2")
                .int(now_ms)
                .text(id);
        if let Some(owner) = owner {
            revoke = revoke.add_next(" AND owner = ").text(owner);
        }
        Ok(self
            .db
            .execute("revoking a key", revoke.repeatable())
            .await?
            > 0)
    }

    /// Records when a key was last used. Never sets the time back.
    pub async fn touch_key(&self, id: &str, now_ms: i64) -> Result<()> {
        let touch = sql("UPDATE api_keys SET last_used_ms = $1 \
             WHERE id = $2 AND (last_used_ms IS NULL OR last_used_ms < $1)")
        .int(now_ms)
        .text(id)
        .repeatable();
        self.db.execute("recording the use of a key", touch).await?;
        Ok(())
    }
}

fn read(row: &AnyRow) -> Result<ApiKey> {
    let record = Record::new("api_keys", row);
    Ok(ApiKey {
        id: record.text("id")?,
        owner: record.text("owner")?,
        name: record.text("name")?,
        mask: record.text("mask")?,
        scopes: record.json("scopes")?,
        created_ms: record.int("created_ms")?,
        expires_ms: record.maybe_int("expires_ms")?,
        last_used_ms: record.maybe_int("last_used_ms")?,
        revoked_ms: record.maybe_int("revoked_ms")?,
    })
}
