//! Timers whose work failed: when each is tried again, and when it is given up.

use std::time::Duration;

use sandyard_core::ErrorKind;
use sandyard_store::StoreResult;
use sandyard_store::model::Timer;

use crate::claim::millis;
use crate::error::ServiceError;
use crate::service::Service;

/// Tries before a timer is given up.
const MAX_ATTEMPTS: i64 = 12;
/// Longest wait between two tries.
const MAX_BACKOFF_MS: i64 = 300_000;
/// Shortest and longest wait for a provider that is away: sandboxes whose time is over may cost money meanwhile.
const AWAY_MS: (i64, i64) = (15_000, 60_000);

impl Service {
    /// Puts a timer back for another try, or among the dead.
    pub(crate) async fn put_back(&self, timer: &Timer, error: &ServiceError) -> StoreResult<()> {
        let text = error.to_string();
        if matches!(
            error.kind,
            ErrorKind::Unavailable
                | ErrorKind::TimedOut
                | ErrorKind::NoSpace
                | ErrorKind::NoCapacity
        ) {
            // An outage or a full disk must not use up the tries.
            let asked_ms = error
                .retry_after_s
                .map_or(0, |wait_s| millis(Duration::from_secs(wait_s)));
            let wait_ms = asked_ms.clamp(AWAY_MS.0, AWAY_MS.1);
            tracing::warn!(
                timer.subject,
                error = text,
                wait_ms,
                "Timer waits for its provider"
            );
            let due_ms = self.clock().now_ms() + wait_ms;
            return self.timers().wait_out(timer, due_ms, &text).await;
        }
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
}
