//! Login sessions.

use crate::error::Result;
use crate::model::{Session, User};
use crate::sql::{Record, sql};
use crate::store::Store;
use crate::users::{self, user_columns};

impl Store {
    /// Inserts a session.
    pub async fn insert_session(&self, session: &Session) -> Result<()> {
        let insert = sql(
            "INSERT INTO sessions (id, owner, refresh_hash, created_ms, expires_ms, revoked_ms) \
             VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .text(&session.id)
        .text(&session.owner)
        .text(&session.refresh_hash)
        .int(session.created_ms)
        .int(session.expires_ms)
        .maybe_int(session.revoked_ms);
        self.db.execute("inserting a session", insert).await?;
        Ok(())
    }

    /// Finds a session and its user.
    pub async fn session(&self, id: &str) -> Result<Option<(Session, User)>> {
        let query = sql(concat!(
            "SELECT sessions.id, sessions.owner, sessions.refresh_hash, sessions.created_ms, sessions.expires_ms, \
             sessions.revoked_ms, ",
            user_columns!(),
            " FROM sessions JOIN users ON users.name = sessions.owner WHERE sessions.id = $1"
        ));
        let Some(row) = self
            .db
            .read_one("finding a session", query.text(id))
            .await?
        else {
            return Ok(None);
        };
        let record = Record::new("sessions", &row);
        let session = Session {
            id: record.text("id")?,
            owner: record.text("owner")?,
            refresh_hash: record.text("refresh_hash")?,
            created_ms: record.int("created_ms")?,
            expires_ms: record.int("expires_ms")?,
            revoked_ms: record.maybe_int("revoked_ms")?,
        };
        Ok(Some((session, users::read(&row)?)))
    }

    /// Replaces the hash of the refresh token. Returns true only for the one caller with the current hash.
    pub async fn rotate_session(
        &self,
        id: &str,
        old_hash: &str,
        new_hash: &str,
        expires_ms: i64,
    ) -> Result<bool> {
        let rotate = sql("UPDATE sessions SET refresh_hash = $1, expires_ms = $2 \
             WHERE id = $3 AND refresh_hash = $4 AND revoked_ms IS NULL")
        .text(new_hash)
        .int(expires_ms)
        .text(id)
        .text(old_hash);
        Ok(self.db.execute("renewing a session", rotate).await? > 0)
    }

    /// Revokes a session. Returns false if there is none, or it was revoked before.
    pub async fn revoke_session(&self, id: &str, now_ms: i64) -> Result<bool> {
        let revoke =
            sql("UPDATE sessions SET revoked_ms = $1 WHERE id = $2 AND revoked_ms IS NULL")
                .int(now_ms)
                .text(id);
        Ok(self.db.execute("revoking a session", revoke).await? > 0)
    }

    /// Revokes all sessions of a user. Returns how many.
    pub async fn revoke_sessions_of(&self, owner: &str, now_ms: i64) -> Result<u64> {
        let revoke =
            sql("UPDATE sessions SET revoked_ms = $1 WHERE owner = $2 AND revoked_ms IS NULL")
                .int(now_ms)
                .text(owner);
        self.db.execute("revoking a user's sessions", revoke).await
    }
}
