//! Stops asking a provider that does not answer, and tries now and then whether it does again.

mod settings;
mod silence;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sandyard_core::Clock;
use tokio::time::Instant;

use super::layered::{Call, Layer, Work};
use super::never_asked::was_never_asked;
use super::timeout::Effort;
use crate::provider::Condition;
use crate::{ProviderError, Result, Verb};
pub use settings::BreakerSettings;
use silence::{is_silence, refusal};

/// Stops asking who does not answer.
#[derive(Debug)]
pub(super) struct Breaker {
    settings: BreakerSettings,
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Calls in a row that were not answered, other than the ones below.
    failures: u32,
    /// Questions whether it is there that were not answered, in a row. Apart from the others: somebody may say that it is
    /// there and do nothing else.
    unheard: u32,
    /// What the last such question came to, since the last call that was answered.
    is_heard: Option<bool>,
    reason: Option<String>,
    first_failure: Option<Instant>,
    changed_ms: Option<i64>,
    /// Whether somebody is finding out what a call that failed means.
    is_probed: bool,
    /// What that came to of late.
    probes: Probes,
    /// Present: calls are refused.
    pause: Option<Pause>,
}

#[derive(Debug)]
struct Pause {
    length: Duration,
    until: Instant,
    /// Whether the one call that may find out is under way.
    is_tried: bool,
}

/// How often it was found well, since when.
#[derive(Clone, Copy, Debug, Default)]
struct Probes {
    since: Option<Instant>,
    well: u32,
}

impl Probes {
    /// So many within so long are enough to know that one instance, and not all of it, is in trouble: a look may be dear.
    const ENOUGH: u32 = 5;
    const WITHIN: Duration = Duration::from_secs(10);

    fn is_over(&self) -> bool {
        self.since
            .is_none_or(|since| since.elapsed() >= Self::WITHIN)
    }

    fn are_enough(&self) -> bool {
        self.well >= Self::ENOUGH && !self.is_over()
    }

    fn add(&mut self) {
        if self.is_over() {
            *self = Self {
                since: Some(Instant::now()),
                well: 0,
            };
        }
        self.well += 1;
    }
}

impl State {
    fn all_failures(&self) -> u32 {
        self.failures.saturating_add(self.unheard)
    }
}

impl Breaker {
    pub(super) fn new(settings: BreakerSettings, clock: Clock) -> Self {
        Self {
            settings,
            clock,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The right to find out, where it is time to and nobody else does.
    fn try_now(&self) -> Option<Trial<'_>> {
        let mut state = self.state();
        let pause = state.pause.as_mut()?;
        if pause.is_tried || pause.until > Instant::now() {
            return None;
        }
        pause.is_tried = true;
        Some(Trial(self))
    }

    /// Refuses calls while it is left alone.
    fn check(&self, call: &Call<'_>) -> Result<()> {
        let state = self.state();
        let Some(pause) = &state.pause else {
            return Ok(());
        };
        let now = Instant::now();
        let silent = state
            .first_failure
            .map_or(Duration::ZERO, |first| now - first);
        Err(refusal(
            call,
            silent,
            pause.until.saturating_duration_since(now),
        ))
    }

    /// Learns from how a call ended.
    fn learn<T>(&self, answer: &Result<T>, is_trial: bool) {
        match answer {
            Err(error) if was_never_asked(error) => {}
            Err(error) if is_silence(error) => {
                self.failed(error, is_trial, |state| &mut state.failures);
            }
            _ => self.answered(),
        }
    }

    /// Learns from the answer to whether it is there. That it is does not make up for what it did not do.
    fn learn_health<T>(&self, answer: &Result<T>, is_trial: bool) {
        match answer {
            Err(error) if was_never_asked(error) => {}
            Err(error) if is_silence(error) => {
                self.state().is_heard = Some(false);
                self.failed(error, is_trial, |state| &mut state.unheard);
            }
            _ => self.heard(),
        }
    }

    fn heard(&self) {
        let mut state = self.state();
        state.unheard = 0;
        if state.failures == 0 && state.pause.is_none() {
            (state.reason, state.first_failure) = (None, None);
        }
        let is_news = state.is_heard.replace(true) != Some(true);
        if let Some(pause) = state.pause.as_mut().filter(|_| is_news) {
            // It is back, by the look of it: the next call may find out.
            pause.until = pause.until.min(Instant::now());
        }
    }

    fn answered(&self) {
        let mut state = self.state();
        let changed_ms = match state.pause {
            Some(_) => Some(self.clock.now_ms()),
            None => state.changed_ms,
        };
        *state = State {
            changed_ms,
            is_probed: state.is_probed,
            probes: state.probes,
            ..State::default()
        };
    }

    fn failed(&self, error: &ProviderError, is_trial: bool, count: fn(&mut State) -> &mut u32) {
        let mut state = self.state();
        let now = Instant::now();
        let count = count(&mut state);
        *count = count.saturating_add(1);
        state.reason = Some(error.message.clone());
        state.first_failure.get_or_insert(now);
        let length = match &state.pause {
            None if state.all_failures() < self.settings.failures => return,
            None => {
                state.changed_ms = Some(self.clock.now_ms());
                self.settings.first_pause
            }
            Some(pause) if is_trial => (pause.length * 2).min(self.settings.longest_pause),
            // It was under way when the others failed and changes nothing.
            Some(_) => return,
        };
        state.pause = Some(Pause {
            length,
            until: now + length,
            is_tried: false,
        });
    }

    /// Finds out whether it is there and does anything, with questions that are short and do no harm.
    async fn probe(&self, call: &Call<'_>, is_trial: bool) {
        let health = (call.health)().await;
        self.learn_health(&health, is_trial);
        if !health.as_ref().is_err_and(is_silence)
            && let Some(look) = self.look(call).await
        {
            self.learn(&look, is_trial);
        }
    }

    /// The same for a call that failed, which one answer serves as well as many: who comes while it is looked for goes without.
    async fn probe_once(&self, call: &Call<'_>, is_trial: bool) {
        {
            let mut state = self.state();
            if state.is_probed || state.probes.are_enough() {
                return;
            }
            state.is_probed = true;
        }
        let _probe = Probe(self);
        self.probe(call, is_trial).await;
        let mut state = self.state();
        if state.pause.is_none() && state.all_failures() == 0 {
            state.probes.add();
        }
    }

    /// Has it look at what it has; none: it is there, and still at it.
    async fn look(&self, call: &Call<'_>) -> Option<Result<()>> {
        let looked = tokio::time::timeout(self.settings.look, (call.look)()).await;
        looked.ok()
    }

    /// Asks whether it is there, which is never refused. While it is left alone this also finds out whether it does anything.
    async fn health<T>(&self, call: &Call<'_>, work: &Work<'_, T>) -> Result<T> {
        let trial = self.try_now();
        let answer = work().await;
        self.learn_health(&answer, trial.is_some());
        let Some(_trial) = trial.or_else(|| self.try_now()) else {
            return answer;
        };
        if answer.is_ok()
            && let Some(look) = self.look(call).await
        {
            self.learn(&look, true);
            if let Err(error) = look
                && is_silence(&error)
            {
                return Err(error);
            }
        }
        answer
    }
}

impl Layer for Breaker {
    async fn around<T: Send>(&self, call: &Call<'_>, work: &Work<'_, T>) -> Result<T> {
        let effort = match call.verb {
            // Nothing is dialled for it, so that its answer tells nothing; and agents may answer where their provider does not.
            Verb::Agent => return work().await,
            verb => Effort::of(verb),
        };
        if effort == Effort::Health {
            return self.health(call, work).await;
        }
        let mut trial = self.try_now();
        if trial.is_some() && effort != Effort::Read {
            // What takes long, or cannot be repeated, does not find out whether anybody is there.
            self.probe(call, true).await;
            trial = None;
        }
        if trial.is_none() {
            self.check(call)?;
        }
        let answer = work().await;
        // One instance may be in trouble of its own, which tells nothing of the others: what the probe comes to counts.
        let is_about_one = !call.subject.is_empty() || effort != Effort::Read;
        match &answer {
            Err(error) if is_about_one && is_silence(error) && !was_never_asked(error) => {
                self.probe_once(call, trial.is_some()).await;
            }
            _ => self.learn(&answer, trial.is_some()),
        }
        drop(trial);
        answer
    }

    fn condition(&self, inner: Condition) -> Condition {
        let state = self.state();
        if state.pause.is_none() && state.all_failures() == 0 && !inner.is_reachable {
            // What lies inside knows better.
            return inner;
        }
        Condition {
            is_reachable: state.pause.is_none() && inner.is_reachable,
            since_ms: state.changed_ms.or(inner.since_ms),
            failures: state.all_failures(),
            reason: state.reason.clone().or(inner.reason),
            calls: inner.calls,
        }
    }
}

/// The right to find out. Gives way to the next when its call is over, whether it was waited for or not.
struct Trial<'a>(&'a Breaker);

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        if let Some(pause) = &mut self.0.state().pause {
            pause.is_tried = false;
        }
    }
}

/// The finding out what a call that failed means. The next may when it is over, whether it was waited for or not.
struct Probe<'a>(&'a Breaker);

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        self.0.state().is_probed = false;
    }
}
