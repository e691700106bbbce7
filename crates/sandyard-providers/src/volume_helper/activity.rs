//! Whether the agent of a volume helper is in use.

use std::time::{Duration, Instant};

use sandyard_agent_client::{AgentClient, Endpoint};

/// How many consecutive checks must fail before a helper counts as silent.
const MIN_FAILURES: u32 = 3;

/// The activity of a helper's agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    /// It runs processes or serves streams.
    Busy,
    /// Nothing has used it for this duration.
    Idle(Duration),
    /// It does not answer: it is gone, or the connection to it is overloaded.
    Silent,
}

/// Asks the agent for its activity.
pub(crate) async fn activity(endpoint: &Endpoint, timeout: Duration) -> Activity {
    let agent = AgentClient::new(endpoint.clone());
    match tokio::time::timeout(timeout, agent.activity()).await {
        Ok(Ok(activity)) if activity.processes == 0 && activity.streams == 0 => {
            Activity::Idle(Duration::from_millis(activity.idle_ms))
        }
        Ok(Ok(_)) => Activity::Busy,
        _ => Activity::Silent,
    }
}

/// The failed checks of a helper.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    since: Instant,
    failures: u32,
}

impl Default for Silence {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            failures: 0,
        }
    }
}

impl Silence {
    /// Counts a failed check; returns whether the helper has been silent for `min_duration`.
    pub(crate) fn is_long(&mut self, min_duration: Duration) -> bool {
        self.failures += 1;
        self.failures >= MIN_FAILURES && self.since.elapsed() >= min_duration
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_failed_check_does_not_count() {
        let mut silence = Silence::default();
        assert!(!silence.is_long(Duration::ZERO));
        assert!(!silence.is_long(Duration::ZERO));
        assert!(silence.is_long(Duration::ZERO), "several checks failed");
        assert!(!silence.is_long(Duration::MAX), "not long enough");
    }

    #[tokio::test]
    async fn an_agent_that_cannot_be_reached_is_silent_and_not_idle() {
        let endpoint = Endpoint::Unix("/nowhere/agent.sock".into());
        let observed = activity(&endpoint, Duration::from_secs(1)).await;
        assert_eq!(observed, Activity::Silent);
    }
}
