//! The report: one entry for each feature of the host, and a verdict.

use serde::{Deserialize, Serialize};

/// One feature of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Stable name, for scripts.
    pub name: String,
    /// What the feature gives the user.
    #[serde(rename = "gives")]
    pub purpose: String,
    /// How much it matters.
    pub needed: Need,
    /// Whether it works.
    pub status: Status,
    /// What the check found.
    pub detail: String,
    /// The command or action that makes it work, if it does not.
    pub fix: Option<String>,
}

/// How much a feature matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// No sandbox runs without it.
    Required,
    /// Sandboxes run without it, with weaker limits or at a higher cost.
    Recommended,
    /// For information.
    Optional,
}

/// Whether a feature is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It works.
    Ok,
    /// It works in part, or its value is lower than it should be.
    Partial,
    /// It does not work.
    Missing,
}

/// The summary of all checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Everything required or recommended works.
    Ready,
    /// Sandboxes run; something recommended is missing.
    Limited,
    /// Something required is missing.
    NotReady,
}

/// The user that ran the checks: the same host offers more to root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// As root.
    Root,
    /// As an ordinary user.
    User,
}

/// The result of all checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The user that ran the checks.
    pub mode: Mode,
    /// The summary of all checks.
    pub verdict: Verdict,
    /// One entry for each feature.
    pub checks: Vec<Check>,
}

impl Report {
    /// Derives the verdict from the checks.
    pub fn of(mode: Mode, checks: Vec<Check>) -> Self {
        let has = |need: Need, status: Status| {
            checks
                .iter()
                .any(|check| check.needed == need && check.status == status)
        };
        let verdict = if has(Need::Required, Status::Missing) {
            Verdict::NotReady
        } else if has(Need::Required, Status::Partial)
            || has(Need::Recommended, Status::Missing)
            || has(Need::Recommended, Status::Partial)
        {
            Verdict::Limited
        } else {
            Verdict::Ready
        };
        Self {
            mode,
            verdict,
            checks,
        }
    }
}

impl Check {
    /// A feature that works; the other constructors start from it.
    pub(crate) fn ok(name: &str, needed: Need) -> Self {
        Self {
            name: name.to_owned(),
            purpose: String::new(),
            needed,
            status: Status::Ok,
            detail: String::new(),
            fix: None,
        }
    }

    /// Says what the feature gives the user.
    pub(crate) fn purpose(mut self, purpose: &str) -> Self {
        self.purpose = purpose.to_owned();
        self
    }

    /// Says what was found.
    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    pub(crate) fn missing(self, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        self.lacking(Status::Missing, detail, fix)
    }

    pub(crate) fn partial(self, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        self.lacking(Status::Partial, detail, fix)
    }

    fn lacking(self, status: Status, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        let (detail, fix) = (detail.into(), Some(fix.into()));
        Self {
            status,
            detail,
            fix,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(checks: &[(Need, Status)]) -> Verdict {
        let checks = checks.iter().map(|(need, status)| Check {
            status: *status,
            ..Check::ok("a", *need).purpose("b").detail("c")
        });
        Report::of(Mode::Root, checks.collect()).verdict
    }

    #[test]
    fn verdict_follows_the_worst_of_what_matters() {
        use {Need::*, Status::*};
        assert_eq!(verdict(&[]), Verdict::Ready);
        assert_eq!(
            verdict(&[(Required, Ok), (Optional, Missing)]),
            Verdict::Ready
        );
        assert_eq!(verdict(&[(Recommended, Missing)]), Verdict::Limited);
        assert_eq!(verdict(&[(Recommended, Partial)]), Verdict::Limited);
        assert_eq!(verdict(&[(Required, Partial)]), Verdict::Limited);
        assert_eq!(
            verdict(&[(Recommended, Ok), (Required, Missing)]),
            Verdict::NotReady
        );
    }

    #[test]
    fn json_has_this_shape() {
        let check = Check::ok("user-namespaces", Need::Required)
            .purpose("isolation")
            .missing("no", "do");
        let json = serde_json::to_string(&Report::of(Mode::User, vec![check])).unwrap();
        assert_eq!(
            json,
            r#"{"mode":"user","verdict":"not_ready","checks":[{"name":"user-namespaces","gives":"isolation","needed":"required","status":"missing","detail":"no","fix":"do"}]}"#
        );
    }
}
