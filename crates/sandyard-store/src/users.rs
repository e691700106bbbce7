//! Accounts.

use sqlx::any::AnyRow;

use crate::error::Result;
use crate::model::{NewUser, User, UserPatch};
use crate::sql::{Record, sql};
use crate::store::Store;

/// All columns, with names that stay unique when a key or a session is read together with its user.
macro_rules! user_columns {
    () => {
        "users.name AS user_name, users.password_hash AS user_password_hash, users.role AS user_role, \
         users.is_disabled AS user_is_disabled, users.max_sandboxes AS user_max_sandboxes, \
         users.failures AS user_failures, users.locked_until_ms AS user_locked_until_ms, \
         users.created_ms AS user_created_ms"
    };
}
pub(crate) use user_columns;

impl Store {
    /// Inserts a user. Returns false if the name is taken.
    pub async fn insert_user(&self, user: &NewUser) -> Result<bool> {
        let insert = sql("INSERT INTO users (name, password_hash, role, is_disabled, max_sandboxes, failures, created_ms) \
             VALUES ($1, $2, $3, 0, $4, 0, $5) ON CONFLICT (name) DO NOTHING")
        .text(&user.name)
        .maybe_text(user.password_hash.as_deref())
        .variant(&user.role)
        .maybe_int(user.max_sandboxes)
        .int(user.created_ms);
        Ok(self.db.execute("inserting a user", insert).await? > 0)
    }

    /// Finds a user.
    pub async fn user(&self, name: &str) -> Result<Option<User>> {
        let query = sql(concat!(
            "SELECT ",
            user_columns!(),
            " FROM users WHERE name = $1"
        ));
        let row = self.db.read_one("finding a user", query.text(name)).await?;
        row.as_ref().map(read).transpose()
    }

    /// Lists users by name.
    pub async fn users(&self) -> Result<Vec<User>> {
        let query = sql(concat!("SELECT ", user_columns!(), " FROM users"));
        let rows = self.db.read("listing users", query).await?;
        let mut users = rows.iter().map(read).collect::<Result<Vec<_>>>()?;
        // Sorted here, because the engines have different collations.
        users.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(users)
    }

    /// Changes a user. Returns false if there is none.
    pub async fn update_user(&self, name: &str, patch: &UserPatch) -> Result<bool> {
        let mut update = sql("UPDATE users SET name = name");
        if let Some(hash) = &patch.password_hash {
            update = update.add_next(", password_hash = ").text(hash);
        }
        if let Some(role) = patch.role {
            update = update.add_next(", role = ").variant(&role);
        }
        if let Some(is_disabled) = patch.is_disabled {
            update = update.add_next(", is_disabled = ").flag(is_disabled);
        }
        if let Some(max_sandboxes) = patch.max_sandboxes {
            update = update
                .add_next(", max_sandboxes = ")
                .maybe_int(max_sandboxes);
        }
        let update = update.add_next(" WHERE name = ").text(name).repeatable();
        Ok(self.db.execute("changing a user", update).await? > 0)
    }

    /// Deletes a user with its keys, sessions and secrets. Returns false if there was none.
    pub async fn delete_user(&self, name: &str) -> Result<bool> {
        let mut writer = self.db.writer("deleting a user").await?;
        let mut tx = writer.begin().await?;
        // Foreign keys delete keys and sessions. Secrets have no foreign key, because an owner need not be a user. A later user with this name must not
        // get them.
        let secrets = sql("DELETE FROM secrets WHERE owner = $1").text(name);
        let user = sql("DELETE FROM users WHERE name = $1").text(name);
        let is_gone = tx.execute(user).await? > 0;
        if is_gone {
            tx.execute(secrets).await?;
        }
        tx.commit().await?;
        Ok(is_gone)
    }

    /// Counts a failed login. At `max_failures` it locks the user until `locked_until_ms` and starts counting again. Atomic, so that concurrent
    /// guesses all count. Returns the new row.
    pub async fn note_login_failure(
        &self,
        name: &str,
        max_failures: i64,
        locked_until_ms: i64,
    ) -> Result<Option<User>> {
        let note = sql(concat!(
            "UPDATE users SET failures = CASE WHEN failures + 1 >= $1 THEN 0 ELSE failures + 1 END, \
             locked_until_ms = CASE WHEN failures + 1 >= $1 THEN $2 ELSE locked_until_ms END \
             WHERE name = $3 RETURNING ",
            user_columns!()
        ))
        .int(max_failures)
        .int(locked_until_ms)
        .text(name);
        let rows = self.db.write("counting a failed login", note).await?;
        rows.first().map(read).transpose()
    }

    /// Clears the failures after a successful login.
    pub async fn clear_login_failures(&self, name: &str) -> Result<()> {
        let clear = sql("UPDATE users SET failures = 0, locked_until_ms = NULL \
             WHERE name = $1 AND (failures <> 0 OR locked_until_ms IS NOT NULL)")
        .text(name)
        .repeatable();
        self.db.execute("clearing failed logins", clear).await?;
        Ok(())
    }
}

/// Reads a row of [`user_columns`].
pub(crate) fn read(row: &AnyRow) -> Result<User> {
    let record = Record::new("users", row);
    Ok(User {
        name: record.text("user_name")?,
        password_hash: record.maybe_text("user_password_hash")?,
        role: record.variant("user_role")?,
        is_disabled: record.flag("user_is_disabled")?,
        max_sandboxes: record.maybe_int("user_max_sandboxes")?,
        failures: record.int("user_failures")?,
        locked_until_ms: record.maybe_int("user_locked_until_ms")?,
        created_ms: record.int("user_created_ms")?,
    })
}
