//! Handles timers that are due.
//!
//! A sandbox has one timer. Its meaning follows from the row: the time of a running sandbox is over, the retention of a paused one is
//! over, a delete or a create was interrupted. Activity does not move timers. When a timer fires, its handler reads the row and postpones
//! the timer if the time is not over. So a timer that fires twice does what one does.

use std::sync::Arc;
use std::time::Duration;

use sandyard_core::time_span::readable;
use sandyard_core::{Caller, ErrorKind, SandboxId, SandboxStatus};
use sandyard_provider::Provider;
use sandyard_store::model::{Expiry, Operation, Sandbox, TimeoutAction, Timer};
use tokio::sync::Semaphore;

use super::reconcile::UNFINISHED_DELETE;
use crate::claim::Claim;
use crate::error::{Result, ServiceError};
use crate::expiry;
use crate::service::Service;
use crate::state::provider_registry::location_of;
use sandyard_core::clock::millis;

/// Most timers of one provider handled at the same time.
const MAX_CONCURRENT: usize = 32;
/// How long a server holds a timer before another may claim it.
const LEASE: Duration = Duration::from_secs(60);
/// How long a timer's work may take before the timer is rescheduled.
const HANDLE_WITHIN: Duration = Duration::from_secs(600);
/// How often to check whether a provider that was never reached has a location now.
const NO_LOCATION_SLEEP: Duration = Duration::from_secs(1);
/// Longest sleep when nothing is due.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);
/// Added to the idle time while other servers may be using a sandbox, in milliseconds.
const PEER_SLACK_MS: i64 = 5_000;
/// How long a timer waits for another operation on its sandbox.
const CLAIM_WITHIN: Duration = Duration::from_secs(2);

/// The result of handling a timer.
enum Outcome {
    /// Nothing more to do.
    Done,
    /// The timer fires again at this time, in milliseconds since 1970.
    Later(i64),
}

impl Service {
    /// Handles the timers of one provider's sandboxes as they fall due, without end. A slow timer delays no other, and a provider that
    /// does not answer delays only its own timers.
    pub(crate) async fn run_timers(&self, provider: &Arc<dyn Provider>) {
        let slots = Arc::new(Semaphore::new(MAX_CONCURRENT));
        loop {
            let Some(location) = location_of(provider) else {
                tokio::time::sleep(NO_LOCATION_SLEEP).await;
                continue;
            };
            let locations = [location.to_owned()];
            let Ok(first) = slots.clone().acquire_owned().await else {
                return;
            };
            let free = slots.available_permits() + 1;
            drop(first);
            match self
                .timers()
                .claim(&locations, self.node_id(), LEASE, free)
                .await
            {
                Ok(due) if due.is_empty() => self.timers().wait(&locations, LONGEST_SLEEP).await,
                Ok(due) => {
                    for timer in due {
                        let service = self.clone();
                        let slot = slots.clone().acquire_owned().await;
                        self.tasks().spawn(async move {
                            service.fire(timer).await;
                            drop(slot);
                        });
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "Failed to read timers; trying again");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }

    /// Handles all timers of one provider that are due now.
    pub(crate) async fn fire_due(&self, provider: &Arc<dyn Provider>) -> Result<()> {
        let Some(location) = location_of(provider) else {
            return Ok(());
        };
        let locations = [location.to_owned()];
        loop {
            let due = self
                .timers()
                .claim(&locations, self.node_id(), LEASE, MAX_CONCURRENT)
                .await?;
            if due.is_empty() {
                return Ok(());
            }
            for timer in due {
                self.fire(timer).await;
            }
        }
    }

    async fn fire(&self, timer: Timer) {
        let started_at = std::time::Instant::now();
        let handled = tokio::time::timeout(HANDLE_WITHIN, self.handle(&timer)).await;
        let result = handled.unwrap_or_else(|_| {
            let message = "handling the timer took too long";
            Err(ServiceError::timed_out(message))
        });
        metrics::counter!("sandyard_timers_fired_total").increment(1);
        let written = match result {
            Ok(Outcome::Done) => self.timers().complete(&timer).await.map(drop),
            Ok(Outcome::Later(due_ms)) => self.timers().postpone(&timer, due_ms).await,
            Err(error) => self.reschedule_failed(&timer, &error).await,
        };
        if let Err(error) = written {
            // The timer's lease ends and it fires again, which is harmless.
            tracing::warn!(%error, timer.subject, "Failed to save the result of a timer");
        }
        tracing::debug!(
            timer.subject,
            duration_ms = started_at.elapsed().as_millis(),
            "Timer fired"
        );
    }

    async fn handle(&self, timer: &Timer) -> Result<Outcome> {
        let Ok(id) = timer.subject.parse::<SandboxId>() else {
            return Ok(Outcome::Done);
        };
        let Some(row) = self.store().sandbox(&id).await? else {
            return Ok(Outcome::Done);
        };
        let now_ms = self.clock().now_ms();
        if let Some((_, _, until_ms)) = &row.claim
            && *until_ms > now_ms
        {
            // The operation in progress sets the right timer when it ends. If its server dies, this timer fires again.
            return Ok(Outcome::Later((*until_ms).min(now_ms + 1000)));
        }
        match row.status {
            SandboxStatus::Deleted => Ok(Outcome::Done),
            SandboxStatus::Deleting => {
                self.delete_by_id(&Caller::system(), &id, UNFINISHED_DELETE)
                    .await?;
                Ok(Outcome::Done)
            }
            SandboxStatus::Creating => {
                self.finish_interrupted_create(&row).await?;
                Ok(Outcome::Done)
            }
            SandboxStatus::Running => self.expire(row).await,
            SandboxStatus::Paused | SandboxStatus::Stopped | SandboxStatus::Error => {
                self.end_retention(row).await
            }
        }
    }

    /// Deletes a sandbox whose retention is over.
    async fn end_retention(&self, row: Sandbox) -> Result<Outcome> {
        if let Some(outcome) = self.retention_left(&row) {
            return Ok(outcome);
        }
        if !self.may_delete_by_time() {
            return Ok(self.after_clock_hold());
        }
        let Some(claim) = self.claim_soon(&row.id, Operation::Delete).await? else {
            return Ok(self.after_other_operation());
        };
        // Checked again under the claim: a request may have woken it.
        if let Some(outcome) = self.retention_left(&claim.row) {
            claim.release().await?;
            return Ok(outcome);
        }
        self.delete_claimed(&Caller::system(), claim, "retention is over")
            .await?;
        Ok(Outcome::Done)
    }

    /// When to check a sandbox's retention again; none if it is over.
    fn retention_left(&self, row: &Sandbox) -> Option<Outcome> {
        let now_ms = self.clock().now_ms();
        match expiry::retention_ends_ms(row, self.settings().retention) {
            None => Some(Outcome::Done),
            Some(end_ms) if end_ms > now_ms => Some(Outcome::Later(end_ms)),
            Some(_) => None,
        }
    }

    /// Claims a sandbox without delaying other timers; none if another operation holds it.
    async fn claim_soon(&self, id: &SandboxId, operation: Operation) -> Result<Option<Claim>> {
        match self.claim_within(id, operation, CLAIM_WITHIN).await {
            Ok(claim) => Ok(Some(claim)),
            Err(error) if error.kind == ErrorKind::Busy => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes by time are held back after a clock jump: checked again in a minute.
    fn after_clock_hold(&self) -> Outcome {
        Outcome::Later(self.clock().now_ms() + 60_000)
    }

    fn after_other_operation(&self) -> Outcome {
        Outcome::Later(self.clock().now_ms() + 1000)
    }

    /// Applies the timeout action of a sandbox, if its time is over.
    async fn expire(&self, row: Sandbox) -> Result<Outcome> {
        let operation = match row.timeout_action {
            TimeoutAction::Pause => Operation::Pause,
            TimeoutAction::Stop => Operation::Stop,
            TimeoutAction::Delete => Operation::Delete,
        };
        if let Some(end_ms) = self.expires_later(&row) {
            return Ok(Outcome::Later(end_ms));
        }
        if operation == Operation::Delete && !self.may_delete_by_time() {
            return Ok(self.after_clock_hold());
        }
        let Some(claim) = self.claim_soon(&row.id, operation).await? else {
            return Ok(self.after_other_operation());
        };
        // Checked again under the claim: a request in between has recorded its activity before it read the row.
        if let Some(end_ms) = self.expires_later(&claim.row) {
            claim.release().await?;
            return Ok(Outcome::Later(end_ms));
        }
        if claim.row.status != SandboxStatus::Running {
            claim.release().await?;
            return Ok(Outcome::Done);
        }
        match claim.row.timeout_action {
            TimeoutAction::Pause => {
                let reason = unused(&claim.row);
                self.pause_claimed(&Caller::system(), claim, Some(reason))
                    .await?;
            }
            TimeoutAction::Stop => {
                let reason = unused(&claim.row);
                self.stop_claimed(&Caller::system(), claim, Some(reason))
                    .await?;
            }
            TimeoutAction::Delete => {
                self.delete_claimed(&Caller::system(), claim, "its time is over")
                    .await?;
            }
        }
        Ok(Outcome::Done)
    }

    /// When to check a running sandbox's time again; none if it is over.
    fn expires_later(&self, row: &Sandbox) -> Option<i64> {
        let now_ms = self.clock().now_ms();
        let slack_ms = match row.expiry {
            // Another server saves its activity only every second.
            Expiry::Idle if self.has_peers() => PEER_SLACK_MS,
            _ => 0,
        };
        let end_ms = self.expires_ms(row)?.saturating_add(slack_ms);
        // While the sandbox is in use its end moves all the time. Checking once per timeout is enough.
        (end_ms > now_ms).then_some(end_ms.max(now_ms + 100).min(now_ms + millis(MAX_CHECK)))
    }
}

/// The longest time between two checks of a running sandbox.
const MAX_CHECK: Duration = Duration::from_secs(86_400);

/// Why a sandbox is paused or stopped when its timeout is over.
fn unused(row: &Sandbox) -> String {
    format!("not used for {}", readable(row.timeout_s.unsigned_abs()))
}
