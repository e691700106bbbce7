//! What a run found, and several runs together.

use serde::{Deserialize, Serialize};

use crate::finding::{Finding, Verdict};
use crate::grade::Grade;
use crate::identity::Identity;

/// One run of the probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// What this run was, for the reader: `as root inside`, `as the user inside`, `the host afterwards`.
    pub label: String,
    /// Who the probe was; none for what the host says.
    pub identity: Option<Identity>,
    /// What each check found.
    pub findings: Vec<Finding>,
}

/// Several runs, graded as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suite {
    /// The grade of the worst finding.
    pub grade: Grade,
    /// Number of findings by verdict.
    #[serde(rename = "tally")]
    pub counts: VerdictCounts,
    /// The runs.
    pub reports: Vec<Report>,
}

/// Number of findings by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictCounts {
    /// Checks that held.
    pub held: usize,
    /// Checks that found a breach.
    pub breached: usize,
    /// Checks that could not run.
    pub inconclusive: usize,
}

impl Report {
    /// The finding of that id.
    #[must_use]
    pub fn finding(&self, id: &str) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.id == id)
    }
}

impl Suite {
    /// Combines runs. A run without findings counts as failed: the probe may have been killed.
    #[must_use]
    pub fn new(reports: Vec<Report>) -> Self {
        let all = || reports.iter().flat_map(|report| &report.findings);
        let mut counts = VerdictCounts::default();
        for finding in all() {
            match finding.verdict {
                Verdict::Held => counts.held += 1,
                Verdict::Breached => counts.breached += 1,
                Verdict::Inconclusive => counts.inconclusive += 1,
            }
        }
        let worst = Grade::of(all());
        let empty = reports.iter().any(|report| report.findings.is_empty());
        Self {
            grade: if empty { Grade::F } else { worst },
            counts,
            reports,
        }
    }

    /// Whether nothing was breached.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.counts.breached == 0 && self.grade != Grade::F
    }
}
