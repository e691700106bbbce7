//! What a test wants to go wrong, and what it saw.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::gate::{Barrier, Gate};
use sandyard_provider::{ProviderError, ProviderErrorKind, Result, Verb};

/// One call that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Which one.
    pub verb: Verb,
    /// The instance or template it was about; the sandbox's id for `create`; empty when it was about none.
    pub subject: String,
}

/// Whether something is to happen before a call's work or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    Before,
    After,
}

/// What is to go wrong.
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
    /// Calls until it strikes.
    left: usize,
    moment: Moment,
    kind: ProviderErrorKind,
}

/// What one call has to go through: decided when it comes in, so that the order of calls decides and nothing else.
#[derive(Debug)]
pub(super) struct Fate {
    verb: Verb,
    delay: Option<Duration>,
    failure: Option<(Moment, ProviderErrorKind)>,
    gates: Vec<(Moment, Arc<Barrier>)>,
}

impl Script {
    pub(super) fn fail(&mut self, verb: Verb, nth: usize, moment: Moment, kind: ProviderErrorKind) {
        self.failures.push(Failure {
            verb,
            left: nth.max(1),
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

    /// Notes a call and says what becomes of it.
    pub(super) fn enter(&mut self, verb: Verb, subject: &str) -> Fate {
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
            rule.left -= 1;
            if rule.left == 0 {
                failure = failure.or(Some((rule.moment, rule.kind)));
            }
            rule.left > 0
        });
        let gates = self.gates.iter().filter(|(held, ..)| *held == verb);
        Fate {
            verb,
            delay: self.delays.get(&verb).copied(),
            failure,
            gates: gates
                .map(|(_, moment, barrier)| (*moment, barrier.clone()))
                .collect(),
        }
    }
}

impl Fate {
    /// Goes through everything that lies at `moment`.
    pub(super) async fn pass(&self, moment: Moment) -> Result<()> {
        for (at, barrier) in &self.gates {
            if *at == moment {
                barrier.pass().await;
            }
        }
        if let (Moment::Before, Some(delay)) = (moment, self.delay) {
            tokio::time::sleep(delay).await;
        }
        match self.failure {
            Some((at, kind)) if at == moment => Err(ProviderError::new(
                kind,
                format!("`{}` failed as the test wanted", self.verb),
            )),
            _ => Ok(()),
        }
    }
}
