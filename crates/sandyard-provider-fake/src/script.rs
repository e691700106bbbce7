//! The failures, delays and gates that a test sets, and the record of all calls.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::gate::{Barrier, Gate};
use sandyard_provider::{ProviderError, ProviderErrorKind, Result, Verb};

/// A recorded call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The method.
    pub verb: Verb,
    /// Id or name of the instance, template or volume; the sandbox's id for `create`; empty for calls without a subject.
    pub subject: String,
}

/// Whether a failure or gate applies before a call's work or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    Before,
    After,
}

/// The script of a test.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) calls: Vec<Call>,
    pub(super) is_down: bool,
    pub(super) delays: HashMap<Verb, Duration>,
    failures: Vec<Failure>,
    gates: Vec<(Verb, Moment, Arc<Barrier>)>,
}

#[derive(Debug)]
struct Failure {
    verb: Verb,
    /// Number of calls until it applies.
    remaining: usize,
    moment: Moment,
    kind: ProviderErrorKind,
}

/// What applies to one call. It is decided when the call arrives, so that it depends on the order of calls alone.
#[derive(Debug)]
pub(super) struct CallPlan {
    verb: Verb,
    delay: Option<Duration>,
    failure: Option<(Moment, ProviderErrorKind)>,
    gates: Vec<(Moment, Arc<Barrier>)>,
}

impl Script {
    pub(super) fn fail(&mut self, verb: Verb, nth: usize, moment: Moment, kind: ProviderErrorKind) {
        self.failures.push(Failure {
            verb,
            remaining: nth.max(1),
            moment,
            kind,
        });
    }

    pub(super) fn hold(&mut self, verb: Verb, moment: Moment) -> Gate {
        let (gate, barrier) = Gate::new();
        self.gates.retain(|(_, _, barrier)| !barrier.is_open());
        self.gates.push((verb, moment, barrier));
        gate
    }

    /// Records a call and returns what applies to it.
    pub(super) fn enter(&mut self, verb: Verb, subject: &str) -> CallPlan {
        self.calls.push(Call {
            verb,
            subject: subject.to_owned(),
        });
        let mut failure = self
            .is_down
            .then_some((Moment::Before, ProviderErrorKind::Unavailable));
        self.failures.retain_mut(|rule| {
            if rule.verb != verb {
                return true;
            }
            rule.remaining -= 1;
            if rule.remaining == 0 {
                failure = failure.or(Some((rule.moment, rule.kind)));
            }
            rule.remaining > 0
        });
        let gates = self.gates.iter().filter(|(held, ..)| *held == verb);
        CallPlan {
            verb,
            delay: self.delays.get(&verb).copied(),
            failure,
            gates: gates
                .map(|(_, moment, barrier)| (*moment, barrier.clone()))
                .collect(),
        }
    }
}

impl CallPlan {
    /// Applies everything that is due at `moment`.
    pub(super) async fn apply(&self, moment: Moment) -> Result<()> {
        for (at, barrier) in &self.gates {
            if *at == moment {
                barrier.wait().await;
            }
        }
        if let (Moment::Before, Some(delay)) = (moment, self.delay) {
            tokio::time::sleep(delay).await;
        }
        match self.failure {
            Some((at, kind)) if at == moment => Err(ProviderError::new(
                kind,
                format!("`{}` failed as the test requested", self.verb),
            )),
            _ => Ok(()),
        }
    }
}
