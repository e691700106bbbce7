//! Waiting for what happens elsewhere, within a time.

use std::time::Duration;

use sandyard_provider::Result;
use tokio::time::Instant;

use super::error::timed_out;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(1);

/// Backoff between looks, each longer than the one before.
pub(super) struct Backoff {
    most: Duration,
    until: Instant,
    next: Duration,
}

impl Backoff {
    pub(super) fn new(most: Duration) -> Self {
        Self {
            most,
            until: Instant::now() + most,
            next: FIRST,
        }
    }

    /// Waits a little.
    ///
    /// # Errors
    /// `TimedOut` when the time is over.
    pub(super) async fn next(&mut self, what: &str) -> Result<()> {
        if Instant::now() + self.next > self.until {
            return Err(timed_out(what, self.most));
        }
        tokio::time::sleep(self.next).await;
        self.next = (self.next * 3 / 2).min(LONGEST);
        Ok(())
    }
}
