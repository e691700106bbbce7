//! A circuit breaker: rejects calls to a provider that does not answer, and probes now and then whether it answers again.

mod no_answer;
mod settings;

use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use sandyard_core::Clock;
use tokio::time::Instant;

use super::layer::{Layer, Request};
use super::rejected_locally::is_rejected_locally;
use super::timeout::Effort;
use crate::provider::Condition;
use crate::{Answer, ProviderError, Result, Verb};
use no_answer::{is_unanswered, rejection};
pub use settings::BreakerSettings;

/// Rejects calls while the provider does not answer.
#[derive(Debug)]
pub(super) struct BreakerLayer {
    settings: BreakerSettings,
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Consecutive unanswered calls, health checks not included.
    failures: u32,
    /// Consecutive unanswered health checks. They are counted apart: a provider may answer health checks and nothing else.
    failed_health_checks: u32,
    /// Result of the last health check since the last answered call.
    is_healthy: Option<bool>,
    /// Message of the last failure.
    reason: Option<String>,
    first_failure: Option<Instant>,
    /// When the breaker last opened or closed.
    changed_ms: Option<i64>,
    /// Whether a probe after a failed call is in progress.
    is_probing: bool,
    /// Recent successful probes.
    probes: Probes,
    /// Present while the breaker is open.
    open: Option<Open>,
}

/// An open breaker.
#[derive(Debug)]
struct Open {
    length: Duration,
    until: Instant,
    /// Whether the one trial call that may go through is in progress.
    is_trial_running: bool,
}

/// Number of successful probes after failed calls, and since when.
#[derive(Clone, Copy, Debug, Default)]
struct Probes {
    since: Option<Instant>,
    successes: u32,
}

impl Probes {
    /// This many successes within [`Self::WINDOW`] show that one instance, and not the provider, is in trouble. More probes are
    /// not sent: a listing may be expensive.
    const MAX_PROBES: u32 = 5;
    const WINDOW: Duration = Duration::from_secs(10);

    fn is_expired(&self) -> bool {
        self.since
            .is_none_or(|since| since.elapsed() >= Self::WINDOW)
    }

    fn is_used_up(&self) -> bool {
        self.successes >= Self::MAX_PROBES && !self.is_expired()
    }

    fn add(&mut self) {
        if self.is_expired() {
            *self = Self {
                since: Some(Instant::now()),
                successes: 0,
            };
        }
        self.successes += 1;
    }
}

impl State {
    fn all_failures(&self) -> u32 {
        self.failures.saturating_add(self.failed_health_checks)
    }
}

impl BreakerLayer {
    pub(super) fn new(settings: BreakerSettings, clock: Clock) -> Self {
        Self {
            settings,
            clock,
            state: Mutex::default(),
        }
    }

    /// The right to send a trial call, when the pause is over and no other trial is in progress.
    fn begin_trial(&self) -> Option<Trial<'_>> {
        let mut state = self.state.lock();
        let open = state.open.as_mut()?;
        if open.is_trial_running || open.until > Instant::now() {
            return None;
        }
        open.is_trial_running = true;
        Some(Trial(self))
    }

    /// Rejects the call while the breaker is open.
    fn check(&self, request: &Request<'_>) -> Result<()> {
        let state = self.state.lock();
        let Some(open) = &state.open else {
            return Ok(());
        };
        let now = Instant::now();
        let silent = state
            .first_failure
            .map_or(Duration::ZERO, |first| now - first);
        let wait = open.until.saturating_duration_since(now);
        Err(rejection(request, silent, wait))
    }

    /// Counts the result of a call.
    fn count<T>(&self, answer: &Result<T>, is_trial: bool) {
        match answer {
            Err(error) if is_rejected_locally(error) => {}
            Err(error) if is_unanswered(error) => {
                self.count_failure(error, is_trial, |state| &mut state.failures);
            }
            _ => self.close(),
        }
    }

    /// Counts the result of a health check. A success does not close the breaker: the provider may do nothing else.
    fn count_health_check<T>(&self, answer: &Result<T>, is_trial: bool) {
        match answer {
            Err(error) if is_rejected_locally(error) => {}
            Err(error) if is_unanswered(error) => {
                self.state.lock().is_healthy = Some(false);
                self.count_failure(error, is_trial, |state| &mut state.failed_health_checks);
            }
            _ => self.note_healthy(),
        }
    }

    fn note_healthy(&self) {
        let mut state = self.state.lock();
        state.failed_health_checks = 0;
        if state.failures == 0 && state.open.is_none() {
            (state.reason, state.first_failure) = (None, None);
        }
        let has_changed = state.is_healthy.replace(true) != Some(true);
        if let Some(open) = state.open.as_mut().filter(|_| has_changed) {
            // The provider seems to be back: the next call may be a trial.
            open.until = open.until.min(Instant::now());
        }
    }

    fn close(&self) {
        let mut state = self.state.lock();
        let changed_ms = match state.open {
            Some(_) => Some(self.clock.now_ms()),
            None => state.changed_ms,
        };
        *state = State {
            changed_ms,
            is_probing: state.is_probing,
            probes: state.probes,
            ..State::default()
        };
    }

    fn count_failure(
        &self,
        error: &ProviderError,
        is_trial: bool,
        counter: fn(&mut State) -> &mut u32,
    ) {
        let mut state = self.state.lock();
        let now = Instant::now();
        let count = counter(&mut state);
        *count = count.saturating_add(1);
        state.reason = Some(error.message.clone());
        state.first_failure.get_or_insert(now);
        let length = match &state.open {
            None if state.all_failures() < self.settings.failures => return,
            None => {
                state.changed_ms = Some(self.clock.now_ms());
                self.settings.first_pause
            }
            Some(open) if is_trial => (open.length * 2).min(self.settings.longest_pause),
            // The call was in progress when the breaker opened, and changes nothing.
            Some(_) => return,
        };
        state.open = Some(Open {
            length,
            until: now + length,
            is_trial_running: false,
        });
    }

    /// Checks with two short, harmless calls whether the provider is there and does its work.
    async fn probe(&self, request: &Request<'_>, is_trial: bool) {
        let health = request.check_health().await;
        self.count_health_check(&health, is_trial);
        if !health.as_ref().is_err_and(is_unanswered)
            && let Some(listing) = self.list(request).await
        {
            self.count(&listing, is_trial);
        }
    }

    /// Probes after a failed call, unless a probe is in progress or recent ones are enough.
    async fn probe_once(&self, request: &Request<'_>, is_trial: bool) {
        {
            let mut state = self.state.lock();
            if state.is_probing || state.probes.is_used_up() {
                return;
            }
            state.is_probing = true;
        }
        let _probing = Probing(self);
        self.probe(request, is_trial).await;
        let mut state = self.state.lock();
        if state.open.is_none() && state.all_failures() == 0 {
            state.probes.add();
        }
    }

    /// Has the provider list its instances; `None` when it is still at it after a while.
    async fn list(&self, request: &Request<'_>) -> Option<Result<()>> {
        let listing = tokio::time::timeout(self.settings.list_timeout, request.list()).await;
        listing.ok()
    }

    /// Sends a health check, which is never rejected. While the breaker is open, a successful one is followed by a listing as
    /// trial.
    async fn check_health(&self, request: &Request<'_>) -> Result<Answer> {
        let trial = self.begin_trial();
        let answer = request.send().await;
        self.count_health_check(&answer, trial.is_some());
        let Some(_trial) = trial.or_else(|| self.begin_trial()) else {
            return answer;
        };
        if answer.is_ok()
            && let Some(listing) = self.list(request).await
        {
            self.count(&listing, true);
            if let Err(error) = listing
                && is_unanswered(&error)
            {
                return Err(error);
            }
        }
        answer
    }
}

#[async_trait]
impl Layer for BreakerLayer {
    async fn handle(&self, request: &Request<'_>) -> Result<Answer> {
        let effort = match request.verb() {
            // Nothing is dialled for it, so its answer says nothing; and agents may answer where their provider does not.
            Verb::Agent => return request.send().await,
            verb => Effort::of(verb),
        };
        if effort == Effort::Health {
            return self.check_health(request).await;
        }
        let mut trial = self.begin_trial();
        if trial.is_some() && effort != Effort::Read {
            // A call that takes long or cannot be repeated is no trial.
            self.probe(request, true).await;
            trial = None;
        }
        if trial.is_none() {
            self.check(request)?;
        }
        let answer = request.send().await;
        // A failure about one instance says nothing about the others: the probe's result counts instead.
        let is_about_one = !request.subject().is_empty() || effort != Effort::Read;
        match &answer {
            Err(error) if is_about_one && is_unanswered(error) && !is_rejected_locally(error) => {
                self.probe_once(request, trial.is_some()).await;
            }
            _ => self.count(&answer, trial.is_some()),
        }
        drop(trial);
        answer
    }

    fn condition(&self, inner: Condition) -> Condition {
        let state = self.state.lock();
        if state.open.is_none() && state.all_failures() == 0 && !inner.is_reachable {
            // The inner provider knows better.
            return inner;
        }
        Condition {
            is_reachable: state.open.is_none() && inner.is_reachable,
            since_ms: state.changed_ms.or(inner.since_ms),
            failures: state.all_failures(),
            reason: state.reason.clone().or(inner.reason),
            calls: inner.calls,
        }
    }
}

/// The right to send a trial call. Dropping it allows the next trial.
struct Trial<'a>(&'a BreakerLayer);

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        if let Some(open) = &mut self.0.state.lock().open {
            open.is_trial_running = false;
        }
    }
}

/// A probe in progress. Dropping it allows the next one.
struct Probing<'a>(&'a BreakerLayer);

impl Drop for Probing<'_> {
    fn drop(&mut self) {
        self.0.state.lock().is_probing = false;
    }
}
