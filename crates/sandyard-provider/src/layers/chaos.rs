//! Injects faults: calls fail, hang or lose their answers. For tests of code that uses a provider; no setting of a server enables it.
//!
//! The same seed and the same order of calls give the same faults.

use std::collections::{HashMap, VecDeque};
use std::str::FromStr;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::layer::{Layer, Request};
use crate::{Answer, ProviderError, ProviderErrorKind, Result, Verb};

/// A fault of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The provider cannot be reached: `Unavailable`; nothing is done.
    Refused,
    /// The provider is full: `NoCapacity`, with a time to retry after.
    NoCapacity,
    /// The call fails: `Failed`; nothing is done.
    Failed,
    /// No answer comes, and nothing is done.
    Hang,
    /// The call takes this much longer.
    Slow(Duration),
    /// The work is done but its answer is lost: `TimedOut`.
    AnswerLost,
}

/// How often a fault occurs.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The call it applies to; `None` for all calls.
    pub verb: Option<Verb>,
    /// The fault.
    pub fault: Fault,
    /// Its probability, from 0 (never) to 1 (always).
    pub probability: f64,
}

/// Which faults occur, and when.
///
/// As text: entries with commas between, `seed=7` or `CALL:FAULT=PROBABILITY`, such as `create:refused=0.1,*:slow-200=0.5`. The
/// number after `slow-` is milliseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChaosSettings {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Rules in order; the first one that applies decides.
    pub rules: Vec<Rule>,
    /// Faults of the first calls of a verb, in order, before any rule applies; `None` for a call that succeeds.
    pub sequence: Vec<(Verb, Option<Fault>)>,
}

/// Injects faults.
#[derive(Debug)]
pub(super) struct ChaosLayer {
    rules: Vec<Rule>,
    sequence: Mutex<HashMap<Verb, VecDeque<Option<Fault>>>>,
    random: Mutex<fastrand::Rng>,
}

impl ChaosLayer {
    pub(super) fn new(settings: ChaosSettings) -> Self {
        let mut sequence: HashMap<Verb, VecDeque<_>> = HashMap::new();
        for (verb, fault) in settings.sequence {
            sequence.entry(verb).or_default().push_back(fault);
        }
        Self {
            rules: settings.rules,
            sequence: Mutex::new(sequence),
            random: Mutex::new(fastrand::Rng::with_seed(settings.seed)),
        }
    }

    fn next(&self, verb: Verb) -> Option<Fault> {
        let mut sequence = self.sequence.lock();
        if let Some(fault) = sequence.get_mut(&verb).and_then(VecDeque::pop_front) {
            return fault;
        }
        let mut random = self.random.lock();
        let applies = |rule: &&Rule| rule.verb.is_none_or(|only| only == verb);
        let mut rules = self.rules.iter().filter(applies);
        let chosen = rules.find(|rule| random.f64() < rule.probability);
        chosen.map(|rule| rule.fault)
    }
}

#[async_trait]
impl Layer for ChaosLayer {
    async fn handle(&self, request: &Request<'_>) -> Result<Answer> {
        let fault = |kind| {
            let message = format!(
                "injected fault: `{}` of provider `{}`",
                request.verb(),
                request.provider()
            );
            ProviderError::new(kind, message)
        };
        match self.next(request.verb()) {
            None => request.send().await,
            Some(Fault::Refused) => Err(fault(ProviderErrorKind::Unavailable)),
            Some(Fault::NoCapacity) => {
                let soon = Duration::from_secs(1);
                Err(fault(ProviderErrorKind::NoCapacity).retry_after(soon))
            }
            Some(Fault::Failed) => Err(fault(ProviderErrorKind::Failed)),
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::Slow(by)) => {
                tokio::time::sleep(by).await;
                request.send().await
            }
            Some(Fault::AnswerLost) => {
                request.send().await?;
                Err(fault(ProviderErrorKind::TimedOut))
            }
        }
    }
}

/// An entry that is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is neither `seed=NUMBER` nor `CALL:FAULT=PROBABILITY`, as in `create:refused=0.1`; faults: {FAULTS}"
)]
pub struct ChaosSettingsError(String);

const FAULTS: &str = "refused, no_capacity, failed, hang, slow-MILLISECONDS, answer_lost";

impl FromStr for ChaosSettings {
    type Err = ChaosSettingsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut settings = Self::default();
        let entries = text.split(',').map(str::trim);
        for entry in entries.filter(|entry| !entry.is_empty()) {
            let invalid = || ChaosSettingsError(entry.to_owned());
            let (name, value) = entry.split_once('=').ok_or_else(invalid)?;
            match name.split_once(':') {
                None if name == "seed" => settings.seed = value.parse().map_err(|_| invalid())?,
                None => return Err(invalid()),
                Some((verb, fault)) => settings.rules.push(Rule {
                    verb: match verb {
                        "*" => None,
                        verb => Some(verb.parse().map_err(|_| invalid())?),
                    },
                    fault: fault_named(fault).ok_or_else(invalid)?,
                    probability: value
                        .parse()
                        .ok()
                        .filter(|p| (0.0..=1.0).contains(p))
                        .ok_or_else(invalid)?,
                }),
            }
        }
        Ok(settings)
    }
}

fn fault_named(name: &str) -> Option<Fault> {
    Some(match name {
        "refused" => Fault::Refused,
        "no_capacity" => Fault::NoCapacity,
        "failed" => Fault::Failed,
        "hang" => Fault::Hang,
        "answer_lost" => Fault::AnswerLost,
        _ => Fault::Slow(Duration::from_millis(
            name.strip_prefix("slow-")?.parse().ok()?,
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_from_text() {
        let read: ChaosSettings = "seed=7, create:refused=0.1,*:slow-200=1"
            .parse()
            .expect("fine");
        let rule = |verb, fault, probability| Rule {
            verb,
            fault,
            probability,
        };
        let slow = Fault::Slow(Duration::from_millis(200));
        let rules = vec![
            rule(Some(Verb::Create), Fault::Refused, 0.1),
            rule(None, slow, 1.0),
        ];
        assert_eq!(
            read,
            ChaosSettings {
                seed: 7,
                rules,
                sequence: vec![]
            }
        );
        for text in [
            "create",
            "create=1",
            "create:odd=1",
            "dance:hang=1",
            "*:hang=2",
            "*:slow-x=1",
            "seed=x",
            "*:hang=NaN",
        ] {
            let error = text.parse::<ChaosSettings>().expect_err(text);
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
