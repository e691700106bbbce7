//! What this process knows of a sandbox's tool server.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Problem;
use super::token::Token;

/// How long what was found is believed. A death in between costs one request, which fails.
const FRESH: Duration = Duration::from_secs(3);
/// How often it is started within [`STARTS_WITHIN`] before it is left alone for the rest of that time.
pub(super) const MAX_STARTS: usize = 3;
pub(super) const STARTS_WITHIN: Duration = Duration::from_secs(10);

/// What is known of one.
#[derive(Debug, Default)]
pub(crate) struct ToolServerState {
    /// Held by whoever looks and starts it.
    pub(super) starting: Arc<tokio::sync::Mutex<()>>,
    facts: Mutex<Facts>,
}

#[derive(Debug, Default)]
struct Facts {
    /// What came of the last search, when, and for which token.
    found: Option<(Result<bool, Problem>, Instant, Token)>,
    starts: VecDeque<Instant>,
}

impl ToolServerState {
    /// Whether what was there a moment ago was ours.
    pub(super) fn recent(&self, token: &Token) -> Option<bool> {
        let facts = self.lock();
        let (found, at, whose) = facts.found.as_ref()?;
        let is_ours = found.as_ref().ok()?;
        (at.elapsed() < FRESH && whose == token).then_some(*is_ours)
    }

    /// What came of a search that ended after that moment: whoever waited for it need not begin another, be it that it failed.
    pub(super) fn since(&self, asked: Instant, token: &Token) -> Option<Result<bool, Problem>> {
        let facts = self.lock();
        let (found, at, whose) = facts.found.as_ref()?;
        (*at >= asked && whose == token).then(|| found.clone())
    }

    /// Why the last search came to nothing, if it did.
    pub(super) fn problem(&self) -> Option<Problem> {
        let facts = self.lock();
        let (found, ..) = facts.found.as_ref()?;
        found.as_ref().err().cloned()
    }

    pub(super) fn note(&self, token: &Token, found: Result<bool, Problem>) {
        self.lock().found = Some((found, Instant::now(), token.clone()));
    }

    /// The sandbox's processes are others now.
    pub(crate) fn forget(&self) {
        *self.lock() = Facts::default();
    }

    /// Notes a start; says whether it may be.
    pub(super) fn may_start(&self) -> bool {
        let mut facts = self.lock();
        facts.starts.retain(|at| at.elapsed() < STARTS_WITHIN);
        let may = facts.starts.len() < MAX_STARTS;
        if may {
            facts.starts.push_back(Instant::now());
        }
        may
    }

    fn lock(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_believed_for_its_own_token_and_started_a_few_times_only() {
        let memory = ToolServerState::default();
        let [token, other] = ["1", "2"].map(|key| Token::of("a", key).expect("a token"));
        assert_eq!(memory.recent(&token), None);
        // A busy machine may come to the next line when it is not fresh any more.
        let asked = loop {
            let asked = Instant::now();
            memory.note(&token, Ok(true));
            let recent = (memory.recent(&token), memory.recent(&other));
            if asked.elapsed() < FRESH {
                assert_eq!(recent, (Some(true), None));
                break asked;
            }
        };
        assert_eq!(memory.since(asked, &token), Some(Ok(true)));
        let problem = Problem::new("no room");
        memory.note(&token, Err(problem.clone()));
        assert_eq!(memory.since(asked, &token), Some(Err(problem.clone())));
        assert_eq!(memory.problem(), Some(problem));
        assert_eq!(
            (memory.recent(&token), memory.since(Instant::now(), &token)),
            (None, None)
        );
        loop {
            let began = Instant::now();
            let started = (0..5).filter(|_| memory.may_start()).count();
            memory.forget();
            if began.elapsed() < STARTS_WITHIN {
                assert_eq!(started, MAX_STARTS);
                break;
            }
        }
        assert_eq!(memory.recent(&token), None);
        assert!(memory.may_start());
    }
}
