//! When a breaker breaks.

use std::time::Duration;

/// When to stop asking, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Calls in a row that were not answered.
    pub failures: u32,
    /// How long nothing is asked then; twice as long after each trial that fails.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// How long a look at all there is may take that is to find out whether a provider does anything. One that takes
    /// longer tells nothing: there may be much to look at.
    pub look: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            failures: 5,
            first_pause: Duration::from_secs(5),
            longest_pause: Duration::from_secs(60),
            look: Duration::from_secs(15),
        }
    }
}
