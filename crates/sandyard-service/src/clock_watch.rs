//! Jumps of the wall clock.
//!
//! Times in rows are those of the wall clock, which may be set by hand, by a time server, or come up wrong after a power failure.
//! Compared with the time that really passed a jump is seen, and bounded in what it does:
//!
//! | jump | without this | with it |
//! |---|---|---|
//! | forward | every paused sandbox has been kept long enough at once, and is deleted | deletes by time are held for an hour, or until the clock is set back |
//! | back | the last use lies in the future, so nothing is paused until then | uses in the future count as now |

use std::sync::{Mutex, PoisonError};

use sandyard_core::{Clock, SandboxStatus};

use crate::claim::TOPIC;
use crate::error::ServiceResult;
use crate::service::Service;

/// A difference of the two clocks that is called a jump. Time servers move a clock by less, and slowly.
const JUMP_MS: i64 = 60_000;
/// How long deletes by time are held after a jump forward: time for somebody, or a time server, to set the clock right.
const HOLD_MS: i64 = 3_600_000;

/// Remembers the clocks as they were.
#[derive(Debug)]
pub(crate) struct ClockWatch(Mutex<Seen>);

#[derive(Debug)]
struct Seen {
    /// The wall clock less the steady one. It stays the same unless somebody sets the wall clock.
    offset_ms: i64,
    /// Jumps that were seen and not acted on yet.
    pending_ms: i64,
    /// The offset before the first jump forward that has not been undone, and when the hold ends by the steady clock.
    held: Option<(i64, i64)>,
}

impl ClockWatch {
    pub(crate) fn new(clock: &Clock) -> Self {
        Self(Mutex::new(Seen {
            offset_ms: offset_ms(clock),
            pending_ms: 0,
            held: None,
        }))
    }

    /// How far the wall clock jumped since this was last asked; 0: it did not.
    fn take_jump(&self, clock: &Clock) -> i64 {
        self.look(clock);
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut seen.pending_ms)
    }

    /// Compares the clocks.
    fn look(&self, clock: &Clock) {
        let (now_ms, steady_ms) = (offset_ms(clock), clock.steady_ms());
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let jump_ms = now_ms - seen.offset_ms;
        let before_ms = std::mem::replace(&mut seen.offset_ms, now_ms);
        if jump_ms > JUMP_MS {
            let good_ms = seen.held.map_or(before_ms, |(good_ms, _)| good_ms);
            seen.held = Some((good_ms, steady_ms + HOLD_MS));
        }
        if let Some((good_ms, until_ms)) = seen.held
            && (now_ms <= good_ms + JUMP_MS || steady_ms >= until_ms)
        {
            seen.held = None;
        }
        if jump_ms.abs() > JUMP_MS {
            seen.pending_ms += jump_ms;
        }
    }

    fn is_held(&self) -> bool {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.held.is_some()
    }
}

fn offset_ms(clock: &Clock) -> i64 {
    clock.now_ms() - clock.steady_ms()
}

impl Service {
    /// Looks for a jump of the wall clock, and makes good what one back did.
    pub(crate) async fn watch_clock(&self) {
        let jump_ms = self.clock_watch().take_jump(self.clock());
        if jump_ms > 0 {
            tracing::warn!(
                jump_ms,
                "The clock jumped forward: sandboxes whose time is over are deleted in an hour, unless it is set back"
            );
        }
        if jump_ms < 0 {
            tracing::warn!(jump_ms, "The clock jumped back");
            if let Err(error) = self.rewind_uses().await {
                tracing::warn!(%error, "Sandboxes may be paused later than they should");
            }
        }
    }

    /// Says whether sandboxes and history may be deleted now because their time is over.
    pub(crate) fn may_delete_by_time(&self) -> bool {
        self.clock_watch().look(self.clock());
        !self.clock_watch().is_held()
    }

    /// Brings uses that lie in the future back to now, and the timers that follow from them.
    async fn rewind_uses(&self) -> ServiceResult<()> {
        let now_ms = self.clock().now_ms();
        self.activity().rewind(now_ms);
        self.store().rewind_activity(now_ms).await?;
        for location in self.places().local_locations() {
            let rows = self.rows_of(&location).await?;
            for row in rows
                .iter()
                .filter(|row| row.status == SandboxStatus::Running)
            {
                // Too early is harmless: a timer that fires looks at the row.
                let due_ms = now_ms.saturating_add(row.timeout_s.saturating_mul(1000));
                self.timers()
                    .set(TOPIC, row.id.as_str(), &location, due_ms)
                    .await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletes_are_held_after_a_jump_forward_until_it_is_undone_or_an_hour_is_over() {
        let clock = Clock::manual(1_000_000_000);
        let watch = ClockWatch::new(&clock);
        clock.advance_ms(10 * HOLD_MS);
        assert_eq!(watch.take_jump(&clock), 0, "time that passed is no jump");
        clock.jump_ms(HOLD_MS);
        watch.look(&clock);
        assert!(watch.is_held());
        assert_eq!(watch.take_jump(&clock), HOLD_MS, "kept for who acts on it");
        clock.jump_ms(-HOLD_MS);
        assert_eq!(watch.take_jump(&clock), -HOLD_MS);
        assert!(!watch.is_held(), "it was undone");
        clock.jump_ms(HOLD_MS);
        watch.look(&clock);
        clock.advance_ms(HOLD_MS);
        watch.look(&clock);
        assert!(!watch.is_held(), "an hour is over");
    }
}
