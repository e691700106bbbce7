//! How many flows are recorded one by one. Flows cost their maker nothing and stay for weeks, so there is an allowance for each
//! sandbox, and one for all sandboxes of an owner. What is over it is counted, and the counts are recorded.

/// Rows at once, and rows a day after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowLimit {
    pub(crate) burst: i64,
    pub(crate) per_day: i64,
}

/// For one sandbox: 20,000 in its first day.
pub(crate) const SANDBOX_ROWS: RowLimit = RowLimit {
    burst: 2_000,
    per_day: 18_000,
};

/// For the sandboxes of one owner together.
pub(crate) const OWNER_ROWS: RowLimit = RowLimit {
    burst: 10_000,
    per_day: 90_000,
};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Pauses between summaries of what was only counted, while there is more to count.
const FIRST_PAUSE_MS: i64 = 1_000;
const LONGEST_PAUSE_MS: i64 = 120_000;

/// Rows that may still be written.
#[derive(Debug)]
pub(crate) struct Allowance {
    limit: RowLimit,
    left: i64,
    since_ms: i64,
}

impl Allowance {
    pub(crate) fn new(limit: RowLimit, now_ms: i64) -> Self {
        Self {
            limit,
            left: limit.burst,
            since_ms: now_ms,
        }
    }

    /// Says whether there is one left.
    pub(crate) fn has_one(&mut self, now_ms: i64) -> bool {
        self.refill(now_ms);
        self.left > 0
    }

    pub(crate) fn take_one(&mut self) {
        self.left -= 1;
    }

    /// Says whether it is as good as a new one.
    pub(crate) fn is_full(&mut self, now_ms: i64) -> bool {
        self.refill(now_ms);
        self.left == self.limit.burst
    }

    fn refill(&mut self, now_ms: i64) {
        let RowLimit { burst, per_day } = self.limit;
        let more = (now_ms - self.since_ms).saturating_mul(per_day) / DAY_MS;
        if more >= burst - self.left || now_ms < self.since_ms {
            // Full; or the clock was set back, and nothing is gained.
            self.left = if more > 0 { burst } else { self.left };
            self.since_ms = now_ms;
        } else if more > 0 {
            self.left += more;
            // What is left over of the time counts later.
            self.since_ms += more * DAY_MS / per_day;
        }
    }
}

/// When what was only counted is recorded: soon at first, ever less often while it goes on.
#[derive(Debug)]
pub(crate) struct Summaries {
    pause_ms: i64,
    next_ms: i64,
}

impl Summaries {
    pub(crate) fn new() -> Self {
        Self {
            pause_ms: FIRST_PAUSE_MS,
            next_ms: i64::MIN,
        }
    }

    /// Says whether a summary is due, given whether there is anything to tell.
    pub(crate) fn is_due(&mut self, now_ms: i64, is_any: bool) -> bool {
        // A clock that was set back must not silence it.
        self.next_ms = self.next_ms.min(now_ms.saturating_add(LONGEST_PAUSE_MS));
        if now_ms < self.next_ms {
            return false;
        }
        self.pause_ms = match is_any {
            true => (self.pause_ms * 2).min(LONGEST_PAUSE_MS),
            false => FIRST_PAUSE_MS,
        };
        self.next_ms = now_ms.saturating_add(self.pause_ms);
        is_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(allowance: &mut Allowance, now_ms: i64, wanted: usize) -> i64 {
        let mut taken = 0;
        for _ in 0..wanted {
            if allowance.has_one(now_ms) {
                allowance.take_one();
                taken += 1;
            }
        }
        taken
    }

    #[test]
    fn fifty_flows_a_second_are_twenty_thousand_rows_in_the_first_day() {
        let mut allowance = Allowance::new(SANDBOX_ROWS, 0);
        let day = || (0..DAY_MS / 1000).map(|second| second * 1000);
        let first: i64 = day().map(|now_ms| taken(&mut allowance, now_ms, 50)).sum();
        assert!((19_990..=20_000).contains(&first), "{first}");
        let second: i64 = day()
            .map(|now_ms| taken(&mut allowance, DAY_MS + now_ms, 50))
            .sum();
        assert!((17_990..=18_001).contains(&second), "{second}");
    }

    #[test]
    fn an_allowance_comes_back_in_full_and_not_by_setting_the_clock() {
        let mut allowance = Allowance::new(SANDBOX_ROWS, DAY_MS);
        assert_eq!(taken(&mut allowance, DAY_MS, 5_000), 2_000);
        assert_eq!(taken(&mut allowance, 0, 5_000), 0);
        assert!(!allowance.is_full(DAY_MS / 24));
        assert!(allowance.is_full(DAY_MS));
        assert_eq!(taken(&mut allowance, DAY_MS, 5_000), 2_000);
    }

    #[test]
    fn summaries_become_rare_while_there_is_much_to_count() {
        let mut summaries = Summaries::new();
        let seconds = DAY_MS / 1000;
        let due = (0..seconds).filter(|second| summaries.is_due(second * 1000, true));
        let due = due.count();
        assert!((700..=740).contains(&due), "{due}");
        // Quiet for a while, then told at once again.
        let later = DAY_MS + LONGEST_PAUSE_MS;
        assert!(!summaries.is_due(later, false));
        assert!(summaries.is_due(later + FIRST_PAUSE_MS, true));
    }
}
