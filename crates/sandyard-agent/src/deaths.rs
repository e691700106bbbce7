//! Programs that are started by dials, and end as soon as they are: they are left alone for a while.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

/// How often a program may end within [`WITHIN`] before it is left alone for the rest of that time.
const MAX_DEATHS: usize = 3;
const WITHIN: Duration = Duration::from_secs(10);

/// The last ends of one program.
#[derive(Debug, Default)]
pub(crate) struct Deaths(RefCell<VecDeque<Instant>>);

impl Deaths {
    /// Notes that it has ended now.
    pub(crate) fn note(&self) {
        let mut deaths = self.0.borrow_mut();
        deaths.push_back(Instant::now());
        while deaths.len() > MAX_DEATHS {
            deaths.pop_front();
        }
    }

    /// Says why it is not started now, if it has ended too often.
    pub(crate) fn check(&self, what: &str, log: Option<&Path>) -> Result<(), String> {
        let mut deaths = self.0.borrow_mut();
        deaths.retain(|death| death.elapsed() < WITHIN);
        if deaths.len() < MAX_DEATHS {
            return Ok(());
        }
        let see = log.map(|log| format!(", see {}", log.display()));
        Err(format!(
            "{what} ended {MAX_DEATHS} times within {} seconds{}",
            WITHIN.as_secs(),
            see.unwrap_or_default(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_ends_too_often_is_left_alone_for_a_while() {
        let deaths = Deaths::default();
        for _ in 0..MAX_DEATHS {
            assert_eq!(deaths.check("it", None), Ok(()));
            deaths.note();
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let why = deaths.check("it", Some(Path::new("/log")));
        let expected = "it ended 3 times within 10 seconds, see /log";
        assert_eq!(why, Err(expected.to_owned()));
        tokio::time::advance(WITHIN).await;
        assert_eq!(deaths.check("it", None), Ok(()));
    }
}
