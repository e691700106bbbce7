//! Detects jumps of the wall clock.
//!
//! Rows hold times of the wall clock, which an administrator or a time server may set, and which may be wrong after a power failure. A
//! jump shows as a difference to the steady clock. Its effects are bounded:
//!
//! | jump | effect without this watch | effect with it |
//! |---|---|---|
//! | forward | the retention of every paused sandbox seems to be over, and all are deleted | deletes by time are held back for an hour, or until the clock is set back |
//! | back | the last activity lies in the future, so nothing is paused until then | activity in the future counts as now |

use parking_lot::{Mutex, MutexGuard};
use sandyard_core::Clock;

/// Differences of the two clocks above this are jumps. Time servers change a clock by less, and slowly.
const JUMP_MS: i64 = 60_000;
/// How long deletes by time are held back after a jump forward, so that somebody can set the clock right.
const HOLD_MS: i64 = 3_600_000;

/// Compares the wall clock with the steady clock.
#[derive(Debug)]
pub(crate) struct ClockWatch(Mutex<Observed>);

#[derive(Debug)]
struct Observed {
    /// The wall clock less the steady clock. It changes only when somebody sets the wall clock.
    offset_ms: i64,
    /// The sum of the jumps that nobody has taken yet.
    pending_ms: i64,
    hold: Option<Hold>,
}

/// Deletes by time are held back.
#[derive(Clone, Copy, Debug)]
struct Hold {
    /// The offset before the first jump forward that has not been undone.
    correct_offset_ms: i64,
    /// When the hold ends, by the steady clock.
    until_ms: i64,
}

impl ClockWatch {
    pub(crate) fn new(clock: &Clock) -> Self {
        Self(Mutex::new(Observed {
            offset_ms: offset_ms(clock),
            pending_ms: 0,
            hold: None,
        }))
    }

    /// How far the wall clock jumped since the last call, in milliseconds; 0 if it did not.
    pub(crate) fn take_jump(&self, clock: &Clock) -> i64 {
        std::mem::take(&mut self.observe(clock).pending_ms)
    }

    /// Says whether deletes by time are held back now.
    pub(crate) fn is_held(&self, clock: &Clock) -> bool {
        self.observe(clock).hold.is_some()
    }

    /// Compares the clocks.
    fn observe(&self, clock: &Clock) -> MutexGuard<'_, Observed> {
        let (offset_ms, steady_ms) = (offset_ms(clock), clock.steady_ms());
        let mut observed = self.0.lock();
        let jump_ms = offset_ms - observed.offset_ms;
        let before_ms = std::mem::replace(&mut observed.offset_ms, offset_ms);
        if jump_ms > JUMP_MS {
            observed.hold = Some(Hold {
                correct_offset_ms: observed
                    .hold
                    .map_or(before_ms, |hold| hold.correct_offset_ms),
                until_ms: steady_ms + HOLD_MS,
            });
        }
        observed.hold = observed.hold.filter(|hold| {
            let is_undone = offset_ms <= hold.correct_offset_ms + JUMP_MS;
            !is_undone && steady_ms < hold.until_ms
        });
        if jump_ms.abs() > JUMP_MS {
            observed.pending_ms += jump_ms;
        }
        observed
    }
}

fn offset_ms(clock: &Clock) -> i64 {
    clock.now_ms() - clock.steady_ms()
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
        assert!(watch.is_held(&clock));
        assert_eq!(watch.take_jump(&clock), HOLD_MS, "kept until taken");
        clock.jump_ms(-HOLD_MS);
        assert_eq!(watch.take_jump(&clock), -HOLD_MS);
        assert!(!watch.is_held(&clock), "it was undone");
        clock.jump_ms(HOLD_MS);
        assert!(watch.is_held(&clock));
        clock.advance_ms(HOLD_MS);
        assert!(!watch.is_held(&clock), "an hour is over");
    }
}
