//! Noticing that nobody is there any more.
//!
//! A server that was killed leaves a container engine that may keep the streams of its commands open for ever.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

/// Between two ticks.
const TICK: Duration = Duration::from_secs(1);
/// The server says something every fifteen seconds.
const MOST_TICKS: u32 = 60;

/// Counts time by ticks of its own: those of a container that was paused do not come later all at once, so a pause counts as one.
#[derive(Debug, Default)]
pub(super) struct Patience(Cell<u32>);

impl Patience {
    /// Somebody has said something.
    pub(super) fn renew(&self) {
        self.0.set(0);
    }

    /// Resolves when nobody has for long.
    pub(super) async fn until_lost(&self) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while self.0.get() < MOST_TICKS {
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
    async fn it_lasts_a_minute_from_the_last_word() {
        let patience = Patience::default();
        let began = Instant::now();
        let speaking = async {
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_secs(15)).await;
                patience.renew();
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = patience.until_lost() => {}
            () = speaking => {}
        }
        let seconds = began.elapsed().as_secs();
        assert!((209..=211).contains(&seconds), "{seconds}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_counts_for_no_more_than_a_tick() {
        let patience = Patience::default();
        let began = Instant::now();
        let pausing = async {
            tokio::time::sleep(Duration::from_millis(1500)).await;
            // As if nothing here had run for an hour.
            tokio::time::advance(Duration::from_secs(3600)).await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = patience.until_lost() => {}
            () = pausing => {}
        }
        assert!(began.elapsed() > Duration::from_secs(3600 + 50));
    }
}
