//! Inserts the row of a new sandbox: once per idempotency key, and within the owner's quota.

use std::time::Duration;

use sandyard_core::{Caller, ErrorKind, SandboxStatus};
use sandyard_store::model::{
    Idempotency, InsertOutcome, NewSandbox, Operation, Sandbox, TimerPlan,
};
use serde_json::Value;

use crate::claim::{CLAIM_TTL, Claim};
use crate::error::{Result, ServiceError};
use crate::service::Service;
use sandyard_core::clock::millis;

/// How long a repeated request waits for the first one.
const REPEAT_WAIT: Duration = Duration::from_secs(60);

/// The result of an insert.
pub(in crate::verbs) enum Inserted {
    New(Box<Claim>),
    Repeated(Box<Sandbox>),
}

impl Service {
    /// Inserts the row of a new sandbox, or finds the one that the same request made before. `data` goes into its first event.
    pub(in crate::verbs) async fn insert(
        &self,
        caller: &Caller,
        row: Sandbox,
        data: Value,
        idempotency: Option<&Idempotency>,
    ) -> Result<Inserted> {
        let quota = self.quota(caller, &row.owner).await?;
        self.check_total().await?;
        let event = self.event(&row, "created", caller, data);
        // Its own timer must wait too, if the clock jumps during the create.
        let mut local_lock = Some(self.locks().lock(&row.id).await);
        for _ in 0..2 {
            let new = NewSandbox {
                holder: self.new_holder(),
                claimed_until_ms: self.clock().now_ms() + millis(CLAIM_TTL),
                sandbox: row.clone(),
            };
            // If this server dies before the end, a timer finishes the row when the claim is over.
            let timer = TimerPlan::Set {
                due_ms: new.claimed_until_ms,
            };
            let outcome = self
                .store()
                .insert_sandbox(&new, idempotency, quota, &event, timer)
                .await?;
            match outcome {
                InsertOutcome::Inserted => {
                    let mut row = new.sandbox.clone();
                    row.claim = Some((Operation::Create, new.holder.clone(), new.claimed_until_ms));
                    return Ok(Inserted::New(Box::new(Claim::new(
                        self.clone(),
                        row,
                        new.holder.clone(),
                        local_lock.take(),
                    ))));
                }
                InsertOutcome::Repeated(id) => {
                    let earlier = self.wait_until_made(&id).await?;
                    if let Some(sandbox) = earlier {
                        return Ok(Inserted::Repeated(Box::new(sandbox)));
                    }
                    // The first request failed, so the key is free for this one.
                    if let Some(idempotency) = idempotency {
                        self.store()
                            .forget_idempotency(&row.owner, &idempotency.key, &id)
                            .await?;
                    }
                }
                InsertOutcome::KeyReused => {
                    return Err(ServiceError::conflict(
                        "this idempotency key was used for a different request",
                    )
                    .hint("use a new key for a new sandbox"));
                }
                InsertOutcome::OverQuota { count } => {
                    return Err(ServiceError::new(
                        ErrorKind::QuotaExceeded,
                        format!(
                            "`{}` has {count} sandboxes, which is the maximum",
                            event.owner
                        ),
                    )
                    .hint("delete one you do not need, or ask an admin for more"));
                }
                InsertOutcome::AliasTaken => {
                    return Err(ServiceError::alias_taken());
                }
                InsertOutcome::VolumeGone { id } => {
                    let mounts = &row.mounts;
                    let deleted_mount = mounts.iter().find(|mount| mount.volume_id == id);
                    let name = deleted_mount.map_or(&id, |mount| &mount.name);
                    return Err(ServiceError::conflict(format!(
                        "volume `{name}` is being deleted"
                    ))
                    .field("mounts"));
                }
            }
        }
        Err(ServiceError::busy(
            "the same request is in progress elsewhere",
        ))
    }

    /// Waits for the create of another request; none if it failed.
    async fn wait_until_made(&self, id: &sandyard_core::SandboxId) -> Result<Option<Sandbox>> {
        let deadline = tokio::time::Instant::now() + REPEAT_WAIT;
        loop {
            let Some(sandbox) = self.store().sandbox(id).await? else {
                return Ok(None);
            };
            match sandbox.status {
                SandboxStatus::Creating if tokio::time::Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                SandboxStatus::Creating => {
                    return Err(ServiceError::busy(
                        "the first request with this key is still in progress",
                    ));
                }
                _ if sandbox.started_ms.is_none() => return Ok(None),
                _ => return Ok(Some(sandbox)),
            }
        }
    }

    /// Fails if this installation has the maximum number of sandboxes.
    async fn check_total(&self) -> Result<()> {
        let max = i64::from(self.settings().max_sandboxes);
        if max == 0 {
            return Ok(());
        }
        let counts = self.counts().await?;
        let deleted = SandboxStatus::Deleted.as_str();
        let total: i64 = counts
            .iter()
            .filter(|(status, _)| **status != deleted)
            .map(|(_, count)| count)
            .sum();
        if total < max {
            return Ok(());
        }
        Err(ServiceError::new(
            ErrorKind::NoCapacity,
            format!("this installation has {total} sandboxes, which is the maximum"),
        )
        .hint("delete some, or raise the setting `limits.sandboxes`"))
    }

    /// How many sandboxes an owner may have; none for any number. A user's own quota applies to every caller. The settings' quota does not
    /// apply to admins who act for a user.
    async fn quota(&self, caller: &Caller, owner: &str) -> Result<Option<i64>> {
        let own = self
            .store()
            .user(owner)
            .await?
            .and_then(|user| user.max_sandboxes);
        let default = match caller.is_admin() {
            true => 0,
            false => i64::from(self.settings().max_sandboxes_per_user),
        };
        // A user's own quota of 0 allows no sandbox; the settings' 0 means no limit.
        Ok(own.or((default > 0).then_some(default)))
    }
}
