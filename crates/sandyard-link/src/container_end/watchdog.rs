//! Notices that the server is gone.
//!
//! When a server is killed, the container engine may keep the streams of its commands open forever.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

/// Time between two ticks.
const TICK: Duration = Duration::from_secs(1);
/// Ticks without a ping after which the server counts as gone; it pings every fifteen seconds.
const MAX_TICKS: u32 = 60;

/// Counts ticks since the last ping. A paused container does not get the missed ticks later, so a pause counts as one tick.
#[derive(Debug, Default)]
pub(super) struct Watchdog(Cell<u32>);

impl Watchdog {
    /// Notes a ping.
    pub(super) fn reset(&self) {
        self.0.set(0);
    }

    /// Resolves when no ping came for too long.
    pub(super) async fn expired(&self) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while self.0.get() < MAX_TICKS {
            ticks.tick().await;
            self.0.set(self.0.get() + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn it_expires_a_minute_after_the_last_ping() {
        let watchdog = Watchdog::default();
        let start = Instant::now();
        let speaking = async {
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_secs(15)).await;
                watchdog.reset();
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = watchdog.expired() => {}
            () = speaking => {}
        }
        let seconds = start.elapsed().as_secs();
        assert!((209..=211).contains(&seconds), "{seconds}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_counts_for_no_more_than_a_tick() {
        let watchdog = Watchdog::default();
        let start = Instant::now();
        let pausing = async {
            tokio::time::sleep(Duration::from_millis(1500)).await;
            // As if nothing here had run for an hour.
            tokio::time::advance(Duration::from_secs(3600)).await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = watchdog.expired() => {}
            () = pausing => {}
        }
        assert!(start.elapsed() > Duration::from_secs(3600 + 50));
    }
}
