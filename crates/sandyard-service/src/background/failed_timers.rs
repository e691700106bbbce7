//! Timers whose work failed: when each is tried again, and when it is marked dead.

use std::time::Duration;

use sandyard_core::ErrorKind;
use sandyard_store::StoreResult;
use sandyard_store::model::Timer;

use crate::error::ServiceError;
use crate::service::Service;
use sandyard_core::clock::millis;

/// Attempts before a timer is marked dead.
const MAX_ATTEMPTS: i64 = 12;
/// Longest wait between two attempts, in milliseconds.
const MAX_BACKOFF_MS: i64 = 300_000;
/// Shortest and longest wait for an unreachable provider, in milliseconds. Sandboxes whose time is over may cost money until then.
const OUTAGE_WAIT_MS: (i64, i64) = (15_000, 60_000);

impl Service {
    /// Schedules another attempt, or marks the timer dead.
    pub(crate) async fn reschedule_failed(
        &self,
        timer: &Timer,
        error: &ServiceError,
    ) -> StoreResult<()> {
        let text = error.to_string();
        if matches!(
            error.kind,
            ErrorKind::Unavailable
                | ErrorKind::TimedOut
                | ErrorKind::NoSpace
                | ErrorKind::NoCapacity
        ) {
            // An outage or a full disk must not use up the attempts.
            let retry_after_ms = error
                .retry_after_s
                .map_or(0, |wait_s| millis(Duration::from_secs(wait_s)));
            let wait_ms = retry_after_ms.clamp(OUTAGE_WAIT_MS.0, OUTAGE_WAIT_MS.1);
            tracing::warn!(
                timer.subject,
                error = text,
                wait_ms,
                "Timer waits for its provider"
            );
            let due_ms = self.clock().now_ms() + wait_ms;
            return self
                .timers()
                .postpone_for_outage(timer, due_ms, &text)
                .await;
        }
        if timer.attempts >= MAX_ATTEMPTS {
            metrics::counter!("sandyard_timers_dead_total").increment(1);
            tracing::error!(
                timer.subject,
                error = text,
                "Timer is dead after too many failures; `GET /timers/dead` lists it"
            );
            return self.timers().mark_dead(timer, &text).await;
        }
        let exponent = u32::try_from(timer.attempts.clamp(0, 16)).unwrap_or(16);
        let wait_ms = (1000 * (1_i64 << exponent)).min(MAX_BACKOFF_MS);
        tracing::warn!(
            timer.subject,
            error = text,
            wait_ms,
            "Timer failed; trying again later"
        );
        self.timers()
            .retry(timer, self.clock().now_ms() + wait_ms, &text)
            .await
    }
}
