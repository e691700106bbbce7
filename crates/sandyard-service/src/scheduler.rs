//! Timers that are due.
//!
//! A sandbox has one timer. What it means follows from the row: a running sandbox's time is over, a paused one has been
//! kept long enough, a delete was not finished, a create was left behind. Activity does not move timers: when one comes due,
//! the row is looked at, and if the time is not over yet the timer is put off. So a fired timer is harmless, and firing twice
//! does what firing once does.

use std::sync::Arc;
use std::time::Duration;

use sandyard_core::{Caller, ErrorKind, SandboxId, SandboxStatus};
use sandyard_provider::Provider;
use sandyard_store::model::{Expiry, Operation, Sandbox, TimeoutAction, Timer};
use tokio::sync::Semaphore;

use crate::claim::{Claim, millis};
use crate::error::{ServiceError, ServiceResult};
use crate::expiry;
use crate::places::location_of;
use crate::service::Service;

/// Timers of one provider handled at once.
const AT_ONCE: usize = 32;
/// How long a server has for a timer before another may try.
const LEASE: Duration = Duration::from_secs(60);
/// How long a timer's work may take before it is put back.
const HANDLE_WITHIN: Duration = Duration::from_secs(600);
/// How often a provider that was never reached is asked where its sandboxes are.
const UNPLACED_SLEEP: Duration = Duration::from_secs(1);
/// Longest sleep when nothing is due.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);
/// Added to idle time where other servers may be using a sandbox.
const PEER_SLACK_MS: i64 = 5_000;
/// How long a timer waits for others to finish with its sandbox.
const CLAIM_WITHIN: Duration = Duration::from_secs(2);

/// What a timer came to.
enum Outcome {
    /// Nothing more to do.
    Done,
    /// Its time has not come.
    Later(i64),
}

impl Service {
    /// Handles timers of one provider's sandboxes as they come due, for ever. A slow one holds up none but itself, and a
    /// provider that does not answer none but its own.
    pub(crate) async fn run_timers(&self, provider: &Arc<dyn Provider>) {
        let turns = Arc::new(Semaphore::new(AT_ONCE));
        loop {
            let Some(location) = location_of(provider) else {
                tokio::time::sleep(UNPLACED_SLEEP).await;
                continue;
            };
            let locations = [location.to_owned()];
            let Ok(first) = turns.clone().acquire_owned().await else {
                return;
            };
            let free = turns.available_permits() + 1;
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
                        let turn = turns.clone().acquire_owned().await;
                        self.tasks().spawn(async move {
                            service.fire(timer).await;
                            drop(turn);
                        });
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "Timers could not be read");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }

    /// Handles what is due now with one provider, to the end.
    pub(crate) async fn fire_due(&self, provider: &Arc<dyn Provider>) -> ServiceResult<()> {
        let Some(location) = location_of(provider) else {
            return Ok(());
        };
        let locations = [location.to_owned()];
        loop {
            let due = self
                .timers()
                .claim(&locations, self.node_id(), LEASE, AT_ONCE)
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
        let began = std::time::Instant::now();
        let handled = tokio::time::timeout(HANDLE_WITHIN, self.handle(&timer)).await;
        let result = handled.unwrap_or_else(|_| {
            let message = "what a timer is for took too long";
            Err(ServiceError::new(ErrorKind::TimedOut, message))
        });
        metrics::counter!("sandyard_timers_fired_total").increment(1);
        let written = match result {
            Ok(Outcome::Done) => self.timers().complete(&timer).await.map(drop),
            Ok(Outcome::Later(due_ms)) => self.timers().postpone(&timer, due_ms).await,
            Err(error) => self.put_back(&timer, &error).await,
        };
        if let Err(error) = written {
            // The lease ends and somebody tries again; the handler bears that.
            tracing::warn!(%error, timer.subject, "A timer's end could not be written down");
        }
        tracing::debug!(
            timer.subject,
            duration_ms = began.elapsed().as_millis(),
            "Timer fired"
        );
    }

    async fn handle(&self, timer: &Timer) -> ServiceResult<Outcome> {
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
            // Somebody is at it, and sets the right timer when done. Should that one die, we look again.
            return Ok(Outcome::Later((*until_ms).min(now_ms + 1000)));
        }
        match row.status {
            SandboxStatus::Deleted => Ok(Outcome::Done),
            SandboxStatus::Deleting => {
                self.delete_by_id(&Caller::system(), &id, "unfinished delete")
                    .await?;
                Ok(Outcome::Done)
            }
            SandboxStatus::Creating => {
                self.settle_create(row).await?;
                Ok(Outcome::Done)
            }
            SandboxStatus::Running => self.expire(row).await,
            SandboxStatus::Paused | SandboxStatus::Stopped | SandboxStatus::Error => {
                self.end_retention(row).await
            }
        }
    }

    /// Deletes a sandbox that has been kept long enough.
    async fn end_retention(&self, row: Sandbox) -> ServiceResult<Outcome> {
        if let Some(outcome) = self.kept_for(&row) {
            return Ok(outcome);
        }
        if !self.may_delete_by_time() {
            return Ok(self.held());
        }
        let Some(claim) = self.claim_soon(&row.id, Operation::Delete).await? else {
            return Ok(self.busy());
        };
        // Looked at again under the claim: somebody may have woken it.
        if let Some(outcome) = self.kept_for(&claim.row) {
            claim.release().await?;
            return Ok(outcome);
        }
        self.delete_claimed(&Caller::system(), claim, "kept long enough")
            .await?;
        Ok(Outcome::Done)
    }

    /// What to do about a sandbox that is kept; none: its time is over.
    fn kept_for(&self, row: &Sandbox) -> Option<Outcome> {
        let now_ms = self.clock().now_ms();
        match expiry::retention_ends_ms(row, self.settings().retention) {
            None => Some(Outcome::Done),
            Some(end_ms) if end_ms > now_ms => Some(Outcome::Later(end_ms)),
            Some(_) => None,
        }
    }

    /// Claims a sandbox without holding up other timers; none: somebody is at it.
    async fn claim_soon(
        &self,
        id: &SandboxId,
        operation: Operation,
    ) -> ServiceResult<Option<Claim>> {
        match self.claim_within(id, operation, CLAIM_WITHIN).await {
            Ok(claim) => Ok(Some(claim)),
            Err(error) if error.kind == ErrorKind::Busy => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The clock jumped: looked at again in a minute.
    fn held(&self) -> Outcome {
        Outcome::Later(self.clock().now_ms() + 60_000)
    }

    fn busy(&self) -> Outcome {
        Outcome::Later(self.clock().now_ms() + 1000)
    }

    /// Ends a sandbox's time, if it is over.
    async fn expire(&self, row: Sandbox) -> ServiceResult<Outcome> {
        let operation = match row.timeout_action {
            TimeoutAction::Pause => Operation::Pause,
            TimeoutAction::Stop => Operation::Stop,
            TimeoutAction::Delete => Operation::Delete,
        };
        if let Some(end_ms) = self.time_left(&row) {
            return Ok(Outcome::Later(end_ms));
        }
        if operation == Operation::Delete && !self.may_delete_by_time() {
            return Ok(self.held());
        }
        let Some(claim) = self.claim_soon(&row.id, operation).await? else {
            return Ok(self.busy());
        };
        // Looked at again under the claim: whoever came in between has marked its use before it believed the row.
        if let Some(end_ms) = self.time_left(&claim.row) {
            claim.release().await?;
            return Ok(Outcome::Later(end_ms));
        }
        if claim.row.status != SandboxStatus::Running {
            claim.release().await?;
            return Ok(Outcome::Done);
        }
        match claim.row.timeout_action {
            TimeoutAction::Pause => {
                let reason = format!("not used for {} s", claim.row.timeout_s);
                self.pause_claimed(&Caller::system(), claim, Some(reason))
                    .await?;
            }
            TimeoutAction::Stop => {
                let reason = format!("not used for {} s", claim.row.timeout_s);
                self.stop_claimed(&Caller::system(), claim, Some(reason))
                    .await?;
            }
            TimeoutAction::Delete => {
                self.delete_claimed(&Caller::system(), claim, "its time was over")
                    .await?;
            }
        }
        Ok(Outcome::Done)
    }

    /// When a running sandbox's time is over, if that is still to come.
    fn time_left(&self, row: &Sandbox) -> Option<i64> {
        let now_ms = self.clock().now_ms();
        let slack_ms = match row.expiry {
            // Another server writes down its use only every second.
            Expiry::Idle if self.has_peers() => PEER_SLACK_MS,
            _ => 0,
        };
        let end_ms = self.expires_ms(row)?.saturating_add(slack_ms);
        // While it is in use its end moves on all the time; looking again once a timeout is often enough.
        (end_ms > now_ms).then_some(end_ms.max(now_ms + 100).min(now_ms + millis(MAX_LOOK)))
    }
}

/// A running sandbox is looked at this often at least.
const MAX_LOOK: Duration = Duration::from_secs(86_400);
