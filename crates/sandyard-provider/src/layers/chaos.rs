//! Makes calls fail, hang and lose their answers: for tests of whatever stands on a provider, built with this crate. A server has no
//! setting for it.
//!
//! The same seed and the same order of calls give the same faults.

use std::collections::{HashMap, VecDeque};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::dice::Dice;
use super::layered::{Call, Layer, Work};
use crate::{ProviderError, ProviderErrorKind, Result, Verb};

/// What goes wrong with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nobody is there: `Unavailable`, nothing was done.
    Refused,
    /// Too much was asked for: `NoCapacity`, and when to come again.
    NoCapacity,
    /// It broke: `Failed`, nothing was done.
    Failed,
    /// There is never an answer, and nothing is done.
    Hang,
    /// It takes that much longer.
    Slow(Duration),
    /// It was done, and nobody is told: `TimedOut`.
    AnswerLost,
}

/// How often something goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// With which call; none: with all of them.
    pub verb: Option<Verb>,
    /// What goes wrong.
    pub fault: Fault,
    /// From 0, never, to 1, always.
    pub probability: f64,
}

/// What goes wrong, and when.
///
/// As text: entries with commas between, `seed=7` or `CALL:FAULT=PROBABILITY`, such as `create:refused=0.1,*:slow-200=0.5`. The
/// number after `slow-` is milliseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChaosSettings {
    /// What chance begins with.
    pub seed: u64,
    /// The first that strikes counts.
    pub rules: Vec<Rule>,
    /// What becomes of the first calls of a kind, one after the other, before any rule is looked at.
    pub sequence: Vec<(Verb, Option<Fault>)>,
}

/// Makes calls go wrong.
#[derive(Debug)]
pub(super) struct Chaos {
    rules: Vec<Rule>,
    sequence: Mutex<HashMap<Verb, VecDeque<Option<Fault>>>>,
    dice: Dice,
}

impl Chaos {
    pub(super) fn new(settings: ChaosSettings) -> Self {
        let mut sequence: HashMap<Verb, VecDeque<_>> = HashMap::new();
        for (verb, fault) in settings.sequence {
            sequence.entry(verb).or_default().push_back(fault);
        }
        Self {
            rules: settings.rules,
            sequence: Mutex::new(sequence),
            dice: Dice::seeded(settings.seed),
        }
    }

    fn next(&self, verb: Verb) -> Option<Fault> {
        let mut sequence = self.sequence.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fault) = sequence.get_mut(&verb).and_then(VecDeque::pop_front) {
            return fault;
        }
        let about = |rule: &&Rule| rule.verb.is_none_or(|about| about == verb);
        let mut rules = self.rules.iter().filter(about);
        let struck = rules.find(|rule| self.dice.roll() < rule.probability);
        struck.map(|rule| rule.fault)
    }
}

impl Layer for Chaos {
    async fn around<T: Send>(&self, call: &Call<'_>, work: &Work<'_, T>) -> Result<T> {
        let wrong = |kind| {
            let message = format!(
                "`{}` of provider `{}` went wrong on purpose",
                call.verb, call.provider
            );
            ProviderError::new(kind, message)
        };
        match self.next(call.verb) {
            None => work().await,
            Some(Fault::Refused) => Err(wrong(ProviderErrorKind::Unavailable)),
            Some(Fault::NoCapacity) => {
                let soon = Duration::from_secs(1);
                Err(wrong(ProviderErrorKind::NoCapacity).retry_after(soon))
            }
            Some(Fault::Failed) => Err(wrong(ProviderErrorKind::Failed)),
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::Slow(by)) => {
                tokio::time::sleep(by).await;
                work().await
            }
            Some(Fault::AnswerLost) => {
                work().await?;
                Err(wrong(ProviderErrorKind::TimedOut))
            }
        }
    }
}

/// Says which entry makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is neither `seed=NUMBER` nor `CALL:FAULT=PROBABILITY`, as in `create:refused=0.1`; faults are {FAULTS}"
)]
pub struct ChaosSettingsError(String);

const FAULTS: &str = "refused, no_capacity, failed, hang, slow-MILLISECONDS, answer_lost";

impl FromStr for ChaosSettings {
    type Err = ChaosSettingsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut settings = Self::default();
        let entries = text.split(',').map(str::trim);
        for entry in entries.filter(|entry| !entry.is_empty()) {
            let odd = || ChaosSettingsError(entry.to_owned());
            let (name, value) = entry.split_once('=').ok_or_else(odd)?;
            match name.split_once(':') {
                None if name == "seed" => settings.seed = value.parse().map_err(|_| odd())?,
                None => return Err(odd()),
                Some((verb, fault)) => settings.rules.push(Rule {
                    verb: match verb {
                        "*" => None,
                        verb => Some(verb.parse().map_err(|_| odd())?),
                    },
                    fault: fault_named(fault).ok_or_else(odd)?,
                    probability: value
                        .parse()
                        .ok()
                        .filter(|p| (0.0..=1.0).contains(p))
                        .ok_or_else(odd)?,
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
        for odd in [
            "create",
            "create=1",
            "create:odd=1",
            "dance:hang=1",
            "*:hang=2",
            "*:slow-x=1",
            "seed=x",
            "*:hang=NaN",
        ] {
            let error = odd.parse::<ChaosSettings>().expect_err(odd);
            assert!(error.to_string().contains(odd), "{error}");
        }
    }
}
