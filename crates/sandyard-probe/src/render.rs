//! A report as text.

use std::fmt::Write;

use crate::finding::{Finding, Group, Verdict};
use crate::grade::Grade;
use crate::report::{Report, Suite};

/// Whether to use colours, which depends on the caller's terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// Plain text.
    Plain,
    /// ANSI colours.
    Colour,
}

/// Renders a suite: every run by group, what did not hold in full, the grade and its rule last.
#[must_use]
pub fn render(suite: &Suite, paint: Paint) -> String {
    let mut text = String::new();
    for report in &suite.reports {
        report_into(&mut text, report, paint);
    }
    let counts = suite.counts;
    let grade = match suite.grade {
        Grade::A | Grade::B => Verdict::Held,
        Grade::C | Grade::D | Grade::F => Verdict::Breached,
    };
    let mark = paint.mark(grade, &format!("Grade {}", suite.grade));
    line(
        &mut text,
        &format!(
            "{mark}: {} held, {} breached, {} inconclusive",
            counts.held, counts.breached, counts.inconclusive
        ),
    );
    line(&mut text, &format!("rule: {}", Grade::RULE));
    text
}

fn report_into(text: &mut String, report: &Report, paint: Paint) {
    let who = report
        .identity
        .as_ref()
        .map(|who| format!(" (uid {}, kernel {})", who.uid, who.kernel));
    line(
        text,
        &format!("== {}{}", report.label, who.unwrap_or_default()),
    );
    for group in Group::ALL {
        let findings: Vec<_> = report
            .findings
            .iter()
            .filter(|finding| finding.group == group)
            .collect();
        if findings.is_empty() {
            continue;
        }
        line(text, &format!("\n{}", group.title()));
        for finding in findings {
            finding_into(text, finding, paint);
        }
    }
    text.push('\n');
}

fn finding_into(text: &mut String, finding: &Finding, paint: Paint) {
    let sign = match finding.verdict {
        Verdict::Held => "✔",
        Verdict::Breached => "✘",
        Verdict::Inconclusive => "?",
    };
    line(
        text,
        &format!("  {} {}", paint.mark(finding.verdict, sign), finding.title),
    );
    if finding.verdict == Verdict::Held {
        return;
    }
    let severity = format!("{:?}", finding.severity).to_lowercase();
    line(text, &format!("      {} · {severity}", finding.id));
    line(text, &format!("      tried:    {}", finding.what_was_tried));
    line(text, &format!("      expected: {}", finding.expected));
    line(
        text,
        &format!("      observed: {}", printable(&finding.observed)),
    );
}

/// Replaces control characters: the text comes from inside a sandbox and must not control the terminal.
fn printable(text: &str) -> String {
    text.chars()
        .map(|letter| {
            if letter.is_control() {
                '\u{fffd}'
            } else {
                letter
            }
        })
        .collect()
}

fn line(text: &mut String, content: &str) {
    writeln!(text, "{content}").expect("writing to a string cannot fail");
}

impl Paint {
    fn mark(self, verdict: Verdict, text: &str) -> String {
        let colour = match verdict {
            Verdict::Held => 32,
            Verdict::Breached => 31,
            Verdict::Inconclusive => 33,
        };
        match self {
            Self::Plain => text.to_owned(),
            Self::Colour => format!("\u{1b}[{colour}m{text}\u{1b}[0m"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;

    fn finding(verdict: Verdict, observed: &str) -> Finding {
        Finding {
            id: "files.x".into(),
            title: "the promise".into(),
            group: Group::Files,
            what_was_tried: "this".into(),
            expected: "nothing".into(),
            observed: observed.into(),
            verdict,
            severity: Severity::High,
        }
    }

    fn rendered(findings: Vec<Finding>) -> String {
        render(
            &Suite::new(vec![Report {
                label: "as root inside".into(),
                identity: None,
                findings,
            }]),
            Paint::Plain,
        )
    }

    #[test]
    fn a_breach_is_printed_in_full_and_a_passed_check_in_one_line() {
        let text = rendered(vec![
            finding(Verdict::Held, "EPERM"),
            finding(Verdict::Breached, "it worked"),
        ]);
        assert!(
            text.contains("✔ the promise\n  ✘ the promise\n      files.x · high\n"),
            "{text}"
        );
        assert!(text.contains("observed: it worked"), "{text}");
        assert!(!text.contains("EPERM"), "{text}");
        assert!(
            text.contains("Grade D: 1 held, 1 breached, 0 inconclusive"),
            "{text}"
        );
    }

    #[test]
    fn control_characters_from_inside_stay_out_of_the_terminal() {
        assert!(!rendered(vec![finding(Verdict::Breached, "\u{1b}[2J")]).contains('\u{1b}'));
    }
}
