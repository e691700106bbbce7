//! Timers that are due.
//!
//! A sandbox has one timer. What it means follows from the row: a running sandbox's time is over, a paused one has been
//! kept long enough, a delete was not finished, a create was left behind. Activity does not move timers: when one comes due,
//! the row is looked at, and if the time is not over yet the timer is put off. So a fired timer is harmless, and firing twice
//! does what firing once does.

use std::sync::Arc;
use std::time::Duration;

use sandyard_core::{Caller, SandboxId, SandboxStatus};
use sandyard_store::model::{Operation, Sandbox, TimeoutAction, Timer};
use tokio::sync::Semaphore;

use crate::claim::millis;
use crate::error::{ServiceError, ServiceResult};
use crate::expiry;
use crate::service::Service;

/// Timers handled at once.
const AT_ONCE: usize = 32;
/// How long a server has for a timer before another may try.
const LEASE: Duration = Duration::from_secs(60);
/// Longest sleep when nothing is due.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);
/// Tries before a timer is given up.
const MAX_ATTEMPTS: i64 = 12;
/// Longest wait between two tries.
const MAX_BACKOFF_MS: i64 = 300_000;

/// What a timer came to.
enum Outcome {
    /// Nothing more to do.
    Done,
    /// Its time has not come.
    Later(i64),
}

impl Service {
    /// Handles timers as they come due, for ever. A slow one holds up none but itself.
    pub(crate) async fn run_timers(&self) {
        let locations = self.places().local_locations();
        let places = Arc::new(Semaphore::new(AT_ONCE));
        loop {
            let Ok(first) = places.clone().acquire_owned().await else {
                return;
            };
            let free = places.available_permits() + 1;
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
                        let place = places.clone().acquire_owned().await;
                        tokio::spawn(async move {
                            service.fire(timer).await;
                            drop(place);
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

    /// Handles what is due now, to the end.
    pub(crate) async fn fire_due(&self) -> ServiceResult<()> {
        let locations = self.places().local_locations();
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
        let result = self.handle(&timer).await;
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

    async fn put_back(
        &self,
        timer: &Timer,
        error: &ServiceError,
    ) -> sandyard_store::StoreResult<()> {
        let text = error.to_string();
        if timer.attempts >= MAX_ATTEMPTS {
            metrics::counter!("sandyard_timers_dead_total").increment(1);
            tracing::error!(
                timer.subject,
                error = text,
                "Timer given up; `GET /timers/dead` lists it"
            );
            return self.timers().bury(timer, &text).await;
        }
        let exponent = u32::try_from(timer.attempts.clamp(0, 16)).unwrap_or(16);
        let wait_ms = (1000 * (1_i64 << exponent)).min(MAX_BACKOFF_MS);
        tracing::warn!(
            timer.subject,
            error = text,
            wait_ms,
            "Timer failed and is tried again"
        );
        self.timers()
            .retry(timer, self.clock().now_ms() + wait_ms, &text)
            .await
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
                match expiry::retention_ends_ms(&row, self.settings().retention) {
                    None => Ok(Outcome::Done),
                    Some(end_ms) if end_ms > now_ms => Ok(Outcome::Later(end_ms)),
                    Some(_) => {
                        self.delete_by_id(&Caller::system(), &id, "kept long enough")
                            .await?;
                        Ok(Outcome::Done)
                    }
                }
            }
        }
    }

    /// Ends a sandbox's time, if it is over.
    async fn expire(&self, row: Sandbox) -> ServiceResult<Outcome> {
        let operation = match row.timeout_action {
            TimeoutAction::Pause => Operation::Pause,
            TimeoutAction::Delete => Operation::Delete,
        };
        if let Some(end_ms) = self.time_left(&row) {
            return Ok(Outcome::Later(end_ms));
        }
        let claim = self.claim(&row.id, operation).await?;
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
            TimeoutAction::Delete => {
                let id = claim.row.id.clone();
                claim.release().await?;
                self.delete_by_id(&Caller::system(), &id, "its time was over")
                    .await?;
            }
        }
        Ok(Outcome::Done)
    }

    /// When a running sandbox's time is over, if that is still to come.
    fn time_left(&self, row: &Sandbox) -> Option<i64> {
        let now_ms = self.clock().now_ms();
        let end_ms = self.expires_ms(row)?;
        // While it is in use its end moves on all the time; looking again once a timeout is often enough.
        (end_ms > now_ms).then_some(end_ms.max(now_ms + 100).min(now_ms + millis(MAX_LOOK)))
    }
}

/// A running sandbox is looked at this often at least.
const MAX_LOOK: Duration = Duration::from_secs(86_400);
