//! Waits for changes at Daytona, within a timeout.

use std::time::Duration;

use sandyard_provider::Result;
use tokio::time::Instant;

use super::error::timed_out;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Increasing pauses between checks.
pub(super) struct Backoff {
    timeout: Duration,
    until: Instant,
    next: Duration,
}

impl Backoff {
    pub(super) fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            until: Instant::now() + timeout,
            next: FIRST_PAUSE,
        }
    }

    /// Waits before the next check.
    ///
    /// # Errors
    /// `TimedOut` when the timeout is over.
    pub(super) async fn next(&mut self, what: &str) -> Result<()> {
        if Instant::now() + self.next > self.until {
            return Err(timed_out(what, self.timeout));
        }
        tokio::time::sleep(self.next).await;
        self.next = (self.next * 3 / 2).min(MAX_PAUSE);
        Ok(())
    }
}
