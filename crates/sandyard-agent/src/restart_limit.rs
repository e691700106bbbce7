//! Limits how often a program that dials start is restarted.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

/// How often a program may end within [`WITHIN`]; then it is not restarted for the rest of that time.
const MAX_EXITS: usize = 3;
const WITHIN: Duration = Duration::from_secs(10);

/// The last exits of one program.
#[derive(Debug, Default)]
pub(crate) struct RestartLimit(RefCell<VecDeque<Instant>>);

impl RestartLimit {
    /// Notes that the program has ended now.
    pub(crate) fn note_exit(&self) {
        let mut exits = self.0.borrow_mut();
        exits.push_back(Instant::now());
        while exits.len() > MAX_EXITS {
            exits.pop_front();
        }
    }

    /// Refuses a start, with the reason, if the program has ended too often.
    pub(crate) fn check(&self, what: &str, log: Option<&Path>) -> Result<(), String> {
        let mut exits = self.0.borrow_mut();
        exits.retain(|exit| exit.elapsed() < WITHIN);
        if exits.len() < MAX_EXITS {
            return Ok(());
        }
        let see = log.map(|log| format!(", see {}", log.display()));
        Err(format!(
            "{what} ended {MAX_EXITS} times within {} seconds{}",
            WITHIN.as_secs(),
            see.unwrap_or_default(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_program_that_ends_too_often_is_not_restarted_for_a_while() {
        let restart_limit = RestartLimit::default();
        for _ in 0..MAX_EXITS {
            assert_eq!(restart_limit.check("it", None), Ok(()));
            restart_limit.note_exit();
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let why = restart_limit.check("it", Some(Path::new("/log")));
        let expected = "it ended 3 times within 10 seconds, see /log";
        assert_eq!(why, Err(expected.to_owned()));
        tokio::time::advance(WITHIN).await;
        assert_eq!(restart_limit.check("it", None), Ok(()));
    }
}
