//! Claims: the exclusive right to change a sandbox.
//!
//! A claim is in the sandbox's row and has a holder and an end. The holder extends it while it works. If the holder dies, the claim
//! ends on its own, or sooner if the holder's node is known to be dead. The next operation then finds a row that says what should be and
//! a provider that says what is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sandyard_core::clock::millis;
use sandyard_core::{Caller, SandboxId, SandboxStatus};
use sandyard_store::SANDBOX_TOPIC;
use sandyard_store::model::{ClaimOutcome, NewEvent, Operation, Sandbox, SandboxPatch, TimerPlan};
use serde_json::{Value, json};
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinHandle;

use crate::error::{Result, ServiceError};
use crate::service::Service;

/// How long a claim lasts unless its holder extends it.
pub(crate) const CLAIM_TTL: Duration = Duration::from_secs(30);
/// How often a claim is extended, and how long the store may take: several attempts before the claim ends.
const EXTEND_EVERY: Duration = Duration::from_secs(5);
const EXTEND_WITHIN: Duration = Duration::from_secs(3);
/// Pause between attempts to release a claim.
const RELEASE_EVERY: Duration = Duration::from_millis(500);
/// How long an operation waits for another one's claim to end.
pub(crate) const CLAIM_WAIT: Duration = Duration::from_secs(45);

/// A sandbox that this operation may change.
#[derive(Debug)]
pub(crate) struct Claim {
    service: Service,
    /// The row as it was when the claim began, or after the last commit.
    pub(crate) row: Sandbox,
    holder: String,
    is_over: bool,
    /// Until when the claim is held for certain, by the steady clock.
    held_until: Arc<Mutex<Instant>>,
    extender: JoinHandle<()>,
    _local_lock: Option<OwnedMutexGuard<()>>,
}

impl Service {
    /// Claims a sandbox, waiting for other operations to finish.
    pub(crate) async fn claim(&self, id: &SandboxId, operation: Operation) -> Result<Claim> {
        self.claim_within(id, operation, CLAIM_WAIT).await
    }

    /// Claims a sandbox, waiting at most `max_wait` for other operations to finish.
    pub(crate) async fn claim_within(
        &self,
        id: &SandboxId,
        operation: Operation,
        max_wait: Duration,
    ) -> Result<Claim> {
        let deadline = tokio::time::Instant::now() + max_wait;
        let local_lock = tokio::time::timeout_at(deadline, self.locks().lock(id))
            .await
            .map_err(|_| busy(id))?;
        let holder = self.new_holder();
        let mut pause = Duration::from_millis(5);
        loop {
            let now_ms = self.clock().now_ms();
            let until_ms = now_ms + millis(CLAIM_TTL);
            let outcome = self
                .store()
                .claim_sandbox(id, operation, &holder, now_ms, until_ms)
                .await?;
            match outcome {
                ClaimOutcome::Claimed(row) => {
                    return Ok(Claim::new(self.clone(), *row, holder, Some(local_lock)));
                }
                ClaimOutcome::Missing => return Err(ServiceError::no_sandbox(id.as_str())),
                ClaimOutcome::Busy { .. } if tokio::time::Instant::now() > deadline => {
                    return Err(busy(id));
                }
                ClaimOutcome::Busy { .. } => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_millis(250));
                }
            }
        }
    }

    /// A unique name for a holder.
    pub(crate) fn new_holder(&self) -> String {
        format!("{}/{}", self.node_id(), self.next_number())
    }
}

impl Claim {
    /// The handle of a claim that the store has recorded already.
    pub(crate) fn new(
        service: Service,
        row: Sandbox,
        holder: String,
        local_lock: Option<OwnedMutexGuard<()>>,
    ) -> Self {
        let held_until = Arc::new(Mutex::new(Instant::now() + CLAIM_TTL));
        let extender = tokio::spawn(extend_periodically(
            service.clone(),
            row.id.clone(),
            holder.clone(),
            held_until.clone(),
        ));
        Self {
            service,
            row,
            holder,
            is_over: false,
            held_until,
            extender,
            _local_lock: local_lock,
        }
    }

    /// Fails once the claim may have ended, so that this operation does not undo the work of the next holder. Call it before every change
    /// of an instance.
    pub(crate) fn check_held(&self) -> Result<()> {
        let until = *self.held_until.lock();
        if Instant::now() < until {
            return Ok(());
        }
        Err(taken_over(&self.row.id))
    }

    /// Saves a change and keeps the claim.
    pub(crate) async fn update(
        &mut self,
        patch: SandboxPatch,
        events: Vec<NewEvent>,
        timer: TimerPlan,
    ) -> Result<()> {
        self.write(patch, events, timer, false).await
    }

    /// Saves a change and ends the claim.
    pub(crate) async fn commit(
        mut self,
        patch: SandboxPatch,
        events: Vec<NewEvent>,
        timer: TimerPlan,
    ) -> Result<Sandbox> {
        self.write(patch, events, timer, true).await?;
        self.is_over = true;
        Ok(self.row.clone())
    }

    /// Ends the claim without a change.
    pub(crate) async fn release(mut self) -> Result<Sandbox> {
        self.service
            .store()
            .release_claim(&self.row.id, &self.holder)
            .await?;
        self.is_over = true;
        Ok(self.row.clone())
    }

    async fn write(
        &mut self,
        patch: SandboxPatch,
        events: Vec<NewEvent>,
        timer: TimerPlan,
        is_last: bool,
    ) -> Result<()> {
        if let Some(next) = patch.status
            && next != self.row.status
            && !self.row.status.can_become(next)
        {
            return Err(ServiceError::conflict(format!(
                "sandbox `{}` is {} and cannot become {next}",
                self.row.id, self.row.status
            )));
        }
        let row = self
            .service
            .store()
            .commit_sandbox(&self.row.id, &self.holder, &patch, &events, timer, is_last)
            .await?
            .ok_or_else(|| taken_over(&self.row.id))?;
        if row.status != self.row.status {
            metrics::counter!("sandyard_transitions_total", "to" => row.status.as_str())
                .increment(1);
            tracing::info!(sandbox.id = %row.id, from = %self.row.status, to = %row.status, "Sandbox `{}` is {}", row.id, row.status);
            self.service.status_changes().announce(&row.id, row.status);
        }
        self.row = row;
        if let TimerPlan::Set { due_ms } = timer {
            self.service
                .timers()
                .announce(
                    SANDBOX_TOPIC,
                    self.row.id.as_str(),
                    &self.row.location,
                    due_ms,
                )
                .await;
        }
        self.service.changes().notify_waiters();
        Ok(())
    }

    /// A new event of this sandbox.
    pub(crate) fn event(&self, kind: &str, caller: &Caller, data: Value) -> NewEvent {
        self.service.event(&self.row, kind, caller, data)
    }

    /// The event for file systems that were repaired when the sandbox started.
    pub(crate) fn repair_event(&self, caller: &Caller, repair: Option<String>) -> Option<NewEvent> {
        repair.map(|detail| self.event("disk_repaired", caller, json!({"detail": detail})))
    }

    /// The timer that this sandbox needs once `patch` is applied.
    pub(crate) fn timer_after(&self, patch: &SandboxPatch) -> TimerPlan {
        let mut next = self.row.clone();
        next.status = patch.status.unwrap_or(next.status);
        next.stopped_ms = patch.stopped_ms.unwrap_or(next.stopped_ms);
        next.timeout_s = patch.timeout_s.unwrap_or(next.timeout_s);
        next.expiry = patch.expiry.unwrap_or(next.expiry);
        next.fixed_end_ms = patch.fixed_end_ms.unwrap_or(next.fixed_end_ms);
        next.last_activity_ms = patch.last_activity_ms.unwrap_or(next.last_activity_ms);
        let last_ms = self.service.last_activity_ms(&next);
        crate::expiry::plan(&next, last_ms, self.service.settings().retention)
    }

    /// Fails for a sandbox that is being deleted, or is.
    pub(crate) fn check_exists(&self) -> Result<()> {
        match self.row.status {
            SandboxStatus::Deleting | SandboxStatus::Deleted => {
                Err(ServiceError::no_sandbox(self.row.id.as_str())
                    .hint("it was deleted; GET /sandboxes/{id}/events lists what happened to it"))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.extender.abort();
        if self.is_over {
            return;
        }
        let (service, id, holder) = (
            self.service.clone(),
            self.row.id.clone(),
            std::mem::take(&mut self.holder),
        );
        // Also after a panic or a failed commit, so that the next operation need not wait for the end of the claim.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { release_with_retries(&service, &id, &holder).await });
        }
    }
}

/// Releases a claim, trying again until the claim has expired if the store fails.
async fn release_with_retries(service: &Service, id: &SandboxId, holder: &str) {
    let expires = Instant::now() + CLAIM_TTL;
    while let Err(error) = service.store().release_claim(id, holder).await {
        if !error.is_transient() || Instant::now() >= expires {
            tracing::warn!(sandbox.id = %id, %error, "Failed to release a claim; it expires on its own");
            return;
        }
        tokio::time::sleep(RELEASE_EVERY).await;
    }
}

/// Extends a claim until the task is aborted.
async fn extend_periodically(
    service: Service,
    id: SandboxId,
    holder: String,
    held_until: Arc<Mutex<Instant>>,
) {
    loop {
        tokio::time::sleep(EXTEND_EVERY).await;
        let until = Instant::now() + CLAIM_TTL;
        let until_ms = service.clock().now_ms() + millis(CLAIM_TTL);
        let extend = service.store().extend_claim(&id, &holder, until_ms);
        match tokio::time::timeout(EXTEND_WITHIN, extend).await {
            Ok(Ok(true)) => {
                *held_until.lock() = until;
            }
            Ok(Ok(false)) => {
                *held_until.lock() = Instant::now();
                return;
            }
            _ => tracing::warn!(sandbox.id = %id, "Failed to extend a claim; trying again"),
        }
    }
}

fn taken_over(id: &SandboxId) -> ServiceError {
    ServiceError::busy(format!("another operation took over sandbox `{id}`"))
        .hint("try again in a moment")
}

fn busy(id: &SandboxId) -> ServiceError {
    ServiceError::busy(format!("another operation is changing sandbox `{id}`"))
        .hint("try again in a moment")
}
