//! Inserts a sandbox.

use sandyard_core::SandboxStatus;
use sha2::{Digest, Sha256};

use super::row::{columns, read_id};
use crate::db::{Engine, Tx};
use crate::error::Result;
use crate::events;
use crate::model::{Idempotency, InsertOutcome, NewEvent, NewSandbox, Operation, TimerPlan};
use crate::sql::{Record, Sql, sql};
use crate::store::Store;
use crate::timer_rows;

impl Store {
    /// Inserts a sandbox with its first event and timer, unless its key was used, its alias is taken, its owner's quota is reached or one of
    /// its volumes is missing. Checks and insert are one transaction, so that concurrent creates cannot exceed the quota.
    pub async fn insert_sandbox(
        &self,
        new: &NewSandbox,
        idempotency: Option<&Idempotency>,
        quota: Option<i64>,
        event: &NewEvent,
        timer: TimerPlan,
    ) -> Result<InsertOutcome> {
        let mut writer = self.db.writer("inserting a sandbox").await?;
        let mut tx = writer.begin().await?;
        self.lock_owner(&mut tx, &new.sandbox.owner).await?;
        if let Some(conflict) = conflict(&mut tx, new, idempotency, quota).await? {
            return Ok(conflict);
        }
        if let Some(id) = self.missing_volume(&mut tx, &new.sandbox.mounts).await? {
            return Ok(InsertOutcome::VolumeGone { id });
        }
        tx.execute(insert(new)).await?;
        if let Some(idempotency) = idempotency {
            tx.execute(insert_key(new, idempotency)).await?;
        }
        timer_rows::apply(&mut tx, &new.sandbox.id, &new.sandbox.location, timer).await?;
        events::add(&mut tx, std::slice::from_ref(event)).await?;
        tx.commit().await?;
        Ok(InsertOutcome::Inserted)
    }

    /// Serialises the inserts of one owner. SQLite serialises all transactions.
    pub(crate) async fn lock_owner(&self, tx: &mut Tx<'_>, owner: &str) -> Result<()> {
        if self.db.engine() == Engine::Postgres {
            // A row that does not exist cannot be locked.
            let lock = sql("SELECT pg_advisory_xact_lock($1)").int(owner_lock(owner));
            tx.rows(lock).await?;
        }
        Ok(())
    }
}

/// Finds a reason to refuse the insert.
async fn conflict(
    tx: &mut Tx<'_>,
    new: &NewSandbox,
    idempotency: Option<&Idempotency>,
    quota: Option<i64>,
) -> Result<Option<InsertOutcome>> {
    let alias = new.sandbox.alias.as_deref();
    if idempotency.is_none() && alias.is_none() && quota.is_none() {
        return Ok(None);
    }
    let check = sql("SELECT \
         (SELECT sandbox_id FROM idempotency WHERE owner = $1 AND idem_key = $2) AS sandbox_id, \
         (SELECT fingerprint FROM idempotency WHERE owner = $1 AND idem_key = $2) AS fingerprint, \
         (SELECT COUNT(*) FROM sandboxes WHERE owner = $1 AND status <> 'deleted' AND alias = $3) AS aliases, \
         (SELECT COUNT(*) FROM sandboxes WHERE owner = $1 AND status <> 'deleted' AND $4 = 1) AS total")
    .text(&new.sandbox.owner)
    .maybe_text(idempotency.map(|idempotency| idempotency.key.as_str()))
    .maybe_text(alias)
    .flag(quota.is_some());
    let rows = tx.rows(check).await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let record = Record::new("idempotency", row);
    if let (Some(idempotency), Some(id)) = (idempotency, record.maybe_text("sandbox_id")?) {
        let is_same = record.text("fingerprint")? == idempotency.fingerprint;
        return Ok(Some(if is_same {
            InsertOutcome::Repeated(read_id(id)?)
        } else {
            InsertOutcome::KeyReused
        }));
    }
    if record.int("aliases")? > 0 {
        return Ok(Some(InsertOutcome::AliasTaken));
    }
    let count = record.int("total")?;
    let is_full = quota.is_some_and(|quota| count >= quota);
    Ok(is_full.then_some(InsertOutcome::OverQuota { count }))
}

fn insert(new: &NewSandbox) -> Sql {
    let sandbox = &new.sandbox;
    sql(concat!(
        "INSERT INTO sandboxes (",
        columns!(),
        ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, \
         $22, $23, $24, $25, $26, $27, $28, $29, $30, 1, $31, $32, $33)"
    ))
    .text(sandbox.id.as_str())
    .text(&sandbox.owner)
    .maybe_text(sandbox.alias.as_deref())
    .maybe_text(sandbox.project.as_deref())
    .text(&sandbox.provider)
    .text(&sandbox.location)
    .maybe_text(sandbox.provider_id.as_deref())
    .text(&sandbox.template)
    .variant(&SandboxStatus::Creating)
    .maybe_text(sandbox.reason.as_deref())
    .json(&sandbox.limits)
    .json(&sandbox.metadata)
    .json(&sandbox.env)
    .maybe_text(sandbox.network.as_ref().map(ToString::to_string).as_deref())
    .json(&sandbox.secrets)
    .json(&sandbox.ports)
    .json(&sandbox.public_ports)
    .json(&sandbox.mounts)
    .text(&sandbox.access_token)
    .int(sandbox.timeout_s)
    .variant(&sandbox.timeout_action)
    .variant(&sandbox.expiry)
    .flag(sandbox.is_auto_resumed)
    .json(&sandbox.limitations)
    .int(sandbox.created_ms)
    .maybe_int(sandbox.started_ms)
    .maybe_int(sandbox.stopped_ms)
    .int(sandbox.last_activity_ms)
    .maybe_int(sandbox.fixed_end_ms)
    .maybe_int(sandbox.deleted_ms)
    .variant(&Operation::Create)
    .text(&new.holder)
    .int(new.claimed_until_ms)
}

fn insert_key(new: &NewSandbox, idempotency: &Idempotency) -> Sql {
    sql("INSERT INTO idempotency (owner, idem_key, fingerprint, sandbox_id, created_ms) VALUES ($1, $2, $3, $4, $5)")
        .text(&new.sandbox.owner)
        .text(&idempotency.key)
        .text(&idempotency.fingerprint)
        .text(new.sandbox.id.as_str())
        .int(new.sandbox.created_ms)
}

/// The number of an owner's advisory lock. Two owners with the same number wait for each other.
fn owner_lock(owner: &str) -> i64 {
    let digest = Sha256::new()
        .chain_update(b"sandyard owner ")
        .chain_update(owner)
        .finalize();
    let mut number = [0; 8];
    number.copy_from_slice(&digest[..8]);
    i64::from_be_bytes(number)
}
