//! What this process knows about a sandbox's tool server.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Problem;
use super::token::Token;

/// How long a result is valid. If the tool server dies meanwhile, one request fails.
const MAX_AGE: Duration = Duration::from_secs(3);
/// How often it is started within [`STARTS_WITHIN`] before it is not started for the rest of that time.
pub(super) const MAX_STARTS: usize = 3;
pub(super) const STARTS_WITHIN: Duration = Duration::from_secs(10);

/// What is known about the tool server of one sandbox.
#[derive(Debug, Default)]
pub(crate) struct ToolServerState {
    /// Held by the task that inspects the sandbox and starts the tool server.
    pub(super) starting: Arc<tokio::sync::Mutex<()>>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The last result, its time, and the token it is about.
    last: Option<(Result<bool, Problem>, Instant, Token)>,
    starts: VecDeque<Instant>,
}

impl ToolServerState {
    /// Whether a recent result found this installation's tool server.
    pub(super) fn recent(&self, token: &Token) -> Option<bool> {
        let inner = self.inner.lock();
        let (last, at, owner) = inner.last.as_ref()?;
        let is_ours = last.as_ref().ok()?;
        (at.elapsed() < MAX_AGE && owner == token).then_some(*is_ours)
    }

    /// The result of a search that ended after `requested_at`: a caller that waited for it needs no other, even if it failed.
    pub(super) fn since(
        &self,
        requested_at: Instant,
        token: &Token,
    ) -> Option<Result<bool, Problem>> {
        let inner = self.inner.lock();
        let (last, at, owner) = inner.last.as_ref()?;
        (*at >= requested_at && owner == token).then(|| last.clone())
    }

    /// Why the last search failed, if it did.
    pub(super) fn problem(&self) -> Option<Problem> {
        let inner = self.inner.lock();
        let (last, ..) = inner.last.as_ref()?;
        last.as_ref().err().cloned()
    }

    pub(super) fn record(&self, token: &Token, last: Result<bool, Problem>) {
        self.inner.lock().last = Some((last, Instant::now(), token.clone()));
    }

    /// Forgets everything: the sandbox's processes are new.
    pub(crate) fn forget(&self) {
        *self.inner.lock() = Inner::default();
    }

    /// Records a start; returns whether it is allowed.
    pub(super) fn allow_start(&self) -> bool {
        let mut inner = self.inner.lock();
        inner.starts.retain(|at| at.elapsed() < STARTS_WITHIN);
        let is_allowed = inner.starts.len() < MAX_STARTS;
        if is_allowed {
            inner.starts.push_back(Instant::now());
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_per_token_and_starts_are_bounded() {
        let state = ToolServerState::default();
        let [token, other] = ["1", "2"].map(|key| Token::of("a", key).expect("a token"));
        assert_eq!(state.recent(&token), None);
        // On a busy machine the result may be outdated on the next line.
        let requested_at = loop {
            let requested_at = Instant::now();
            state.record(&token, Ok(true));
            let recent = (state.recent(&token), state.recent(&other));
            if requested_at.elapsed() < MAX_AGE {
                assert_eq!(recent, (Some(true), None));
                break requested_at;
            }
        };
        assert_eq!(state.since(requested_at, &token), Some(Ok(true)));
        let problem = Problem::new("disk full");
        state.record(&token, Err(problem.clone()));
        assert_eq!(
            state.since(requested_at, &token),
            Some(Err(problem.clone()))
        );
        assert_eq!(state.problem(), Some(problem));
        assert_eq!(
            (state.recent(&token), state.since(Instant::now(), &token)),
            (None, None)
        );
        loop {
            let start = Instant::now();
            let started = (0..5).filter(|_| state.allow_start()).count();
            state.forget();
            if start.elapsed() < STARTS_WITHIN {
                assert_eq!(started, MAX_STARTS);
                break;
            }
        }
        assert_eq!(state.recent(&token), None);
        assert!(state.allow_start());
    }
}
