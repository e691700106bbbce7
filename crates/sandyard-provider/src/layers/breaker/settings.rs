//! When the circuit breaker opens.

use std::time::Duration;

/// When calls are rejected, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Number of consecutive unanswered calls that opens the breaker.
    pub failures: u32,
    /// How long calls are rejected then; twice as long after each failed trial.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// How long a probe waits for a listing. A listing that takes longer says nothing about the provider's health: it may have
    /// many instances.
    pub list_timeout: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            failures: 5,
            first_pause: Duration::from_secs(5),
            longest_pause: Duration::from_secs(60),
            list_timeout: Duration::from_secs(15),
        }
    }
}
