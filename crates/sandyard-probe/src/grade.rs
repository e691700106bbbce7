//! The grade of a suite: one letter.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::finding::{Finding, Severity, Verdict};

/// How well a sandbox held, decided by its worst finding alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Grade {
    /// Every check held.
    A,
    /// At worst a low breach, or a check could not run.
    B,
    /// At worst a medium breach: a layer of defence is missing.
    C,
    /// At worst a high breach: a privilege regained or a neighbour disturbed.
    D,
    /// A critical breach, which is an escape; or nothing was checked at all.
    F,
}

impl Grade {
    /// The rule in one line, for under a report.
    pub const RULE: &'static str = "A: every check held; B: a low breach, or a check could not run; C: a medium breach; \
                                    D: a high breach; F: a critical breach, or nothing was checked";

    /// Grades findings by the worst of them.
    pub fn of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Self {
        findings
            .into_iter()
            .map(Self::of_one)
            .max()
            .unwrap_or(Self::F)
    }

    fn of_one(finding: &Finding) -> Self {
        match (finding.verdict, finding.severity) {
            (Verdict::Held, _) => Self::A,
            (Verdict::Inconclusive, _) | (Verdict::Breached, Severity::Low) => Self::B,
            (Verdict::Breached, Severity::Medium) => Self::C,
            (Verdict::Breached, Severity::High) => Self::D,
            (Verdict::Breached, Severity::Critical) => Self::F,
        }
    }
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Group;

    fn finding(verdict: Verdict, severity: Severity) -> Finding {
        Finding {
            id: "x.y".into(),
            title: String::new(),
            group: Group::Files,
            what_was_tried: String::new(),
            expected: String::new(),
            observed: String::new(),
            verdict,
            severity,
        }
    }

    #[test]
    fn the_worst_finding_decides() {
        let held = finding(Verdict::Held, Severity::Critical);
        let unknown = finding(Verdict::Inconclusive, Severity::Critical);
        let medium = finding(Verdict::Breached, Severity::Medium);
        let critical = finding(Verdict::Breached, Severity::Critical);
        assert_eq!(Grade::of([&held]), Grade::A);
        assert_eq!(Grade::of([&held, &unknown]), Grade::B);
        assert_eq!(Grade::of([&medium, &unknown]), Grade::C);
        assert_eq!(Grade::of([&held, &critical, &medium]), Grade::F);
    }

    #[test]
    fn a_suite_without_checks_fails() {
        assert_eq!(Grade::of([]), Grade::F);
    }
}
