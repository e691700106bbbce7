//! How many flows are recorded one by one.
//!
//! A flow costs its sandbox nothing and stays stored for weeks, so each sandbox and each owner has a quota. Flows beyond it are
//! counted, and the counts are recorded.

use std::time::Instant;

use sandyard_core::TokenBucket;

const SECONDS_PER_DAY: f64 = 86_400.0;

/// The shortest and longest pause between two summaries of counted flows.
const FIRST_PAUSE_MS: i64 = 1_000;
const LONGEST_PAUSE_MS: i64 = 120_000;

/// The quota of one sandbox: 2,000 rows at once and 18,000 a day, so 20,000 in its first day.
pub(crate) fn sandbox_quota(now: Instant) -> TokenBucket {
    TokenBucket::new(18_000.0 / SECONDS_PER_DAY, 2_000.0, now)
}

/// The quota of all sandboxes of one owner: 10,000 rows at once and 90,000 a day.
pub(crate) fn owner_quota(now: Instant) -> TokenBucket {
    TokenBucket::new(90_000.0 / SECONDS_PER_DAY, 10_000.0, now)
}

/// When a summary of counted flows is due: soon at first, then less and less often while there are more.
#[derive(Debug)]
pub(crate) struct SummarySchedule {
    pause_ms: i64,
    next_ms: i64,
}

impl SummarySchedule {
    pub(crate) fn new() -> Self {
        Self {
            pause_ms: FIRST_PAUSE_MS,
            next_ms: i64::MIN,
        }
    }

    /// Says whether a summary is due, given whether there is anything to summarise.
    pub(crate) fn is_due(&mut self, now_ms: i64, has_surplus: bool) -> bool {
        // A clock that was set back must not stop the summaries.
        self.next_ms = self.next_ms.min(now_ms.saturating_add(LONGEST_PAUSE_MS));
        if now_ms < self.next_ms {
            return false;
        }
        self.pause_ms = match has_surplus {
            true => (self.pause_ms * 2).min(LONGEST_PAUSE_MS),
            false => FIRST_PAUSE_MS,
        };
        self.next_ms = now_ms.saturating_add(self.pause_ms);
        has_surplus
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const DAY_S: u64 = 86_400;

    #[test]
    fn fifty_flows_a_second_are_twenty_thousand_rows_in_the_first_day() {
        let start = Instant::now();
        let mut quota = sandbox_quota(start);
        let mut rows_of_day = |day: u64| -> usize {
            let seconds = day * DAY_S..(day + 1) * DAY_S;
            seconds
                .map(|second| {
                    let now = start + Duration::from_secs(second);
                    (0..50).filter(|_| quota.try_take(now)).count()
                })
                .sum()
        };
        let first = rows_of_day(0);
        assert!((19_990..=20_000).contains(&first), "{first}");
        let second = rows_of_day(1);
        assert!((17_990..=18_001).contains(&second), "{second}");
    }

    #[test]
    fn summaries_become_rare_while_there_is_much_to_count() {
        let mut schedule = SummarySchedule::new();
        let day_ms = 1000 * DAY_S as i64;
        let seconds = 0..DAY_S as i64;
        let due = seconds.filter(|second| schedule.is_due(second * 1000, true));
        let due = due.count();
        assert!((700..=740).contains(&due), "{due}");
        // After a quiet time the next summary is due at once.
        let later = day_ms + LONGEST_PAUSE_MS;
        assert!(!schedule.is_due(later, false));
        assert!(schedule.is_due(later + FIRST_PAUSE_MS, true));
    }
}
