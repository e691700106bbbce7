//! Remembers a sandbox before it is made: once, and within what its owner may have.

use std::time::Duration;

use sandyard_core::{Caller, ErrorKind, SandboxStatus};
use sandyard_store::model::{
    Idempotency, InsertOutcome, NewSandbox, Operation, Sandbox, TimerPlan,
};
use serde_json::Value;

use crate::claim::{CLAIM_FOR, Claim, millis};
use crate::error::{ServiceError, ServiceResult};
use crate::service::Service;

/// How long to look for the end of the same request made before.
const REPEAT_PATIENCE: Duration = Duration::from_secs(60);

/// How remembering a sandbox went.
pub(in crate::verbs) enum Inserted {
    New(Box<Claim>),
    Repeated(Box<Sandbox>),
}

impl Service {
    /// Remembers a sandbox on its way, or finds the one the same request made before. `about` goes into its first event.
    pub(in crate::verbs) async fn insert(
        &self,
        caller: &Caller,
        row: Sandbox,
        about: Value,
        idempotency: Option<&Idempotency>,
    ) -> ServiceResult<Inserted> {
        let quota = self.quota(caller, &row.owner).await?;
        self.check_room().await?;
        let event = self.event(&row, "created", caller, about);
        // Its own timer must wait for its turn too, should time jump while it is made.
        let mut turn = Some(self.locks().lock(&row.id).await);
        for _ in 0..2 {
            let new = NewSandbox {
                holder: self.new_holder(),
                claimed_until_ms: self.clock().now_ms() + millis(CLAIM_FOR),
                sandbox: row.clone(),
            };
            // Should this server die before the end, somebody looks after the row when the claim is over.
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
                    return Ok(Inserted::New(Box::new(Claim::held(
                        self.clone(),
                        row,
                        new.holder.clone(),
                        turn.take(),
                    ))));
                }
                InsertOutcome::Repeated(id) => {
                    let earlier = self.wait_until_made(&id).await?;
                    if let Some(sandbox) = earlier {
                        return Ok(Inserted::Repeated(Box::new(sandbox)));
                    }
                    // It never came to be: the key is free for this try.
                    if let Some(idempotency) = idempotency {
                        self.store()
                            .forget_idempotency(&row.owner, &idempotency.key, &id)
                            .await?;
                    }
                }
                InsertOutcome::KeyReused => {
                    return Err(ServiceError::new(
                        ErrorKind::Conflict,
                        "this idempotency key was used for another request",
                    )
                    .hint("use a new key for a new sandbox"));
                }
                InsertOutcome::OverQuota { count } => {
                    return Err(ServiceError::new(
                        ErrorKind::QuotaExceeded,
                        format!(
                            "`{}` has {count} sandboxes, as many as allowed",
                            event.owner
                        ),
                    )
                    .hint("delete one you do not need, or ask an admin for more"));
                }
                InsertOutcome::AliasTaken => {
                    return Err(ServiceError::new(
                        ErrorKind::Conflict,
                        "another sandbox of yours has this name",
                    )
                    .field("alias"));
                }
                InsertOutcome::VolumeGone { id } => {
                    let mounts = &row.mounts;
                    let gone = mounts.iter().find(|mount| mount.volume_id == id);
                    let name = gone.map_or(&id, |mount| &mount.name);
                    return Err(ServiceError::new(
                        ErrorKind::Conflict,
                        format!("volume `{name}` is being deleted"),
                    )
                    .field("mounts"));
                }
            }
        }
        Err(ServiceError::new(
            ErrorKind::Busy,
            "the same request is being made elsewhere",
        ))
    }

    /// Waits for a create that somebody else began; none: it failed.
    async fn wait_until_made(
        &self,
        id: &sandyard_core::SandboxId,
    ) -> ServiceResult<Option<Sandbox>> {
        let deadline = tokio::time::Instant::now() + REPEAT_PATIENCE;
        loop {
            let Some(sandbox) = self.store().sandbox(id).await? else {
                return Ok(None);
            };
            match sandbox.status {
                SandboxStatus::Creating if tokio::time::Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                SandboxStatus::Creating => {
                    return Err(ServiceError::new(
                        ErrorKind::Busy,
                        "the first request with this key is still under way",
                    ));
                }
                _ if sandbox.started_ms.is_none() => return Ok(None),
                _ => return Ok(Some(sandbox)),
            }
        }
    }

    /// Refuses when this installation has as many sandboxes as it may have.
    async fn check_room(&self) -> ServiceResult<()> {
        let most = i64::from(self.settings().max_sandboxes);
        if most == 0 {
            return Ok(());
        }
        let counts = self.counts().await?;
        let gone = SandboxStatus::Deleted.as_str();
        let total: i64 = counts
            .iter()
            .filter(|(status, _)| **status != gone)
            .map(|(_, count)| count)
            .sum();
        if total < most {
            return Ok(());
        }
        Err(ServiceError::new(
            ErrorKind::NoCapacity,
            format!("there are {total} sandboxes, as many as allowed"),
        )
        .hint("delete some, or raise `limits.sandboxes`"))
    }

    /// How many sandboxes an owner may have; none: any number. A number given to a user holds for whoever asks; the
    /// settings' number bounds users, not the admins who act for them.
    async fn quota(&self, caller: &Caller, owner: &str) -> ServiceResult<Option<i64>> {
        let own = self
            .store()
            .user(owner)
            .await?
            .and_then(|user| user.max_sandboxes);
        let default = match caller.is_admin() {
            true => 0,
            false => i64::from(self.settings().max_sandboxes_per_user),
        };
        // A user's own number is meant as it stands: 0 is none.
        Ok(own.or((default > 0).then_some(default)))
    }
}
