//! One check: a hostile attempt, and what must happen with and without a sandbox.

use std::fmt::Display;

use crate::context::Context;
use crate::finding::{Finding, Group, Severity, Verdict};

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Outcome {
    /// Whether the sandbox held.
    pub verdict: Verdict,
    /// What happened, for the report.
    pub observed: String,
}

impl Outcome {
    pub(crate) fn held(observed: impl Display) -> Self {
        Self {
            verdict: Verdict::Held,
            observed: observed.to_string(),
        }
    }

    pub(crate) fn breached(observed: impl Display) -> Self {
        Self {
            verdict: Verdict::Breached,
            observed: observed.to_string(),
        }
    }

    pub(crate) fn inconclusive(observed: impl Display) -> Self {
        Self {
            verdict: Verdict::Inconclusive,
            observed: observed.to_string(),
        }
    }

    /// Breached with the list when there is anything in it, else held.
    pub(crate) fn breached_by(reached: &[String], else_held: impl Display) -> Self {
        const MAX_ITEMS: usize = 6;
        if reached.is_empty() {
            return Self::held(else_held);
        }
        let mut text = reached
            .iter()
            .take(MAX_ITEMS)
            .cloned()
            .collect::<Vec<_>>()
            .join("; ");
        if reached.len() > MAX_ITEMS {
            text += &format!("; and {} more", reached.len() - MAX_ITEMS);
        }
        Self::breached(text)
    }
}

/// What a check does when the suite runs on the bare host, with the plants in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnHost {
    /// It could do harm there and is skipped.
    Unsafe,
    /// It is harmless and must report a breach: otherwise the check proves nothing.
    Breaches,
    /// The same, for root only: an ordinary user of the host may be kept out.
    BreachesForRoot,
    /// It is harmless, and what it finds depends on that host.
    Depends,
}

/// One hostile attempt.
#[derive(Clone, Copy)]
pub struct Check {
    /// Stable name, `group.what`.
    pub id: &'static str,
    /// The promise in a few words.
    pub title: &'static str,
    /// The chapter it belongs to.
    pub group: Group,
    /// How bad a breach is.
    pub severity: Severity,
    /// The attempt, for the report.
    pub attempt_text: &'static str,
    /// What happens in a secure sandbox.
    pub expected: &'static str,
    /// What happens without a sandbox.
    pub on_host: OnHost,
    pub(crate) attempt: fn(&Context) -> Outcome,
}

impl Check {
    /// A check that is unsafe on the bare host, unless [`Check::on_host`] says otherwise.
    pub(crate) const fn new(
        group: Group,
        severity: Severity,
        id: &'static str,
        attempt: fn(&Context) -> Outcome,
    ) -> Self {
        Self {
            id,
            title: "",
            group,
            severity,
            attempt_text: "",
            expected: "",
            on_host: OnHost::Unsafe,
            attempt,
        }
    }

    /// The promise in a few words.
    pub(crate) const fn title(mut self, title: &'static str) -> Self {
        self.title = title;
        self
    }

    /// Says what it attempts.
    pub(crate) const fn attempts(mut self, attempt_text: &'static str) -> Self {
        self.attempt_text = attempt_text;
        self
    }

    /// Says what happens in a secure sandbox.
    pub(crate) const fn expects(mut self, expected: &'static str) -> Self {
        self.expected = expected;
        self
    }

    /// Says what it finds without a sandbox.
    pub(crate) const fn on_host(mut self, on_host: OnHost) -> Self {
        self.on_host = on_host;
        self
    }

    pub(crate) fn finding(&self, outcome: Outcome) -> Finding {
        Finding {
            id: self.id.to_owned(),
            title: self.title.to_owned(),
            group: self.group,
            what_was_tried: self.attempt_text.to_owned(),
            expected: self.expected.to_owned(),
            observed: outcome.observed,
            verdict: outcome.verdict,
            severity: self.severity,
        }
    }
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Check")
            .field("id", &self.id)
            .field("on_host", &self.on_host)
            .finish_non_exhaustive()
    }
}
