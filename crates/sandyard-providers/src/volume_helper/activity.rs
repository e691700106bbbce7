//! Whether somebody is at the agent of a volume.

use std::time::{Duration, Instant};

use sandyard_agent_client::{AgentClient, Endpoint};

/// How often in a row one must have been silent before that counts.
const TIMES: u32 = 3;

/// What an agent says of those who are at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Somebody is.
    Busy,
    /// Nobody has been for so long.
    Idle(Duration),
    /// It does not answer: it is gone, or whoever leads to it has too much to do just now.
    Silent,
}

/// Asks the agent of a volume.
pub(crate) async fn activity(endpoint: &Endpoint, asked_within: Duration) -> Activity {
    let agent = AgentClient::new(endpoint.clone());
    match tokio::time::timeout(asked_within, agent.activity()).await {
        Ok(Ok(now)) if now.processes == 0 && now.streams == 0 => {
            Activity::Idle(Duration::from_millis(now.idle_ms))
        }
        Ok(Ok(_)) => Activity::Busy,
        _ => Activity::Silent,
    }
}

/// One that did not answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    since: Instant,
    times: u32,
}

impl Default for Silence {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            times: 0,
        }
    }
}

impl Silence {
    /// Counts once more; says whether it is of no use to anybody by now.
    pub(crate) fn is_long(&mut self, least: Duration) -> bool {
        self.times += 1;
        self.times >= TIMES && self.since.elapsed() >= least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_silence_is_not_the_end() {
        let mut silence = Silence::default();
        assert!(!silence.is_long(Duration::ZERO));
        assert!(!silence.is_long(Duration::ZERO));
        assert!(silence.is_long(Duration::ZERO), "several are");
        assert!(!silence.is_long(Duration::MAX), "for long enough");
    }

    #[tokio::test]
    async fn nobody_there_is_silence_and_not_idleness() {
        let endpoint = Endpoint::Unix("/nowhere/agent.sock".into());
        let said = activity(&endpoint, Duration::from_secs(1)).await;
        assert_eq!(said, Activity::Silent);
    }
}
