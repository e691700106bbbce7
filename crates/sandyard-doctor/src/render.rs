//! The report as text.

use std::fmt::Write;
use std::os::fd::AsFd;

use crate::report::{Check, Mode, Need, Report, Status, Verdict};

/// With or without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Text only.
    Plain,
    /// With terminal colours.
    Colour,
}

impl Style {
    /// Colour on a terminal, unless `NO_COLOR` is set or the terminal is `dumb`.
    pub fn for_output(output: impl AsFd) -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let plain = set("NO_COLOR").is_some() || set("TERM").is_some_and(|term| term == "dumb");
        match rustix::termios::isatty(output) && !plain {
            true => Self::Colour,
            false => Self::Plain,
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Colour => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}

/// Writes the report as aligned lines, each with a detail below, and a fix below that where there is one.
pub fn render(report: &Report, style: Style) -> String {
    let width = report.checks.iter().map(|check| check.name.len()).max();
    let mut text = String::new();
    let mut rendered: Vec<&Check> = Vec::new();
    for check in &report.checks {
        // A long command is shown once.
        let same = rendered
            .iter()
            .find(|other| other.fix.is_some() && other.fix == check.fix);
        line(&mut text, check, same.copied(), width.unwrap_or(0), style);
        rendered.push(check);
    }
    text.push('\n');
    text.push_str(&summary(report, style));
    text
}

fn line(text: &mut String, check: &Check, same: Option<&Check>, width: usize, style: Style) {
    let (word, code) = match (check.status, check.needed) {
        (Status::Ok, _) => ("ok     ", "32"),
        (_, Need::Optional) => ("note   ", "36"),
        (Status::Partial, _) => ("partial", "33"),
        (Status::Missing, Need::Recommended) => ("missing", "33"),
        (Status::Missing, Need::Required) => ("missing", "31;1"),
    };
    let word = style.paint(code, word);
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{word}  {:width$}  {}", check.name, check.purpose);
    let indent = " ".repeat(9 + width + 2);
    if !check.detail.is_empty() {
        let _ = writeln!(text, "{indent}{}", style.paint("2", &check.detail));
    }
    if let Some(fix) = &check.fix {
        let fix = same.map_or_else(
            || fix.clone(),
            |other| format!("same as for {}", other.name),
        );
        let _ = writeln!(text, "{indent}{} {fix}", style.paint("1", "fix:"));
    }
}

fn summary(report: &Report, style: Style) -> String {
    let who = match report.mode {
        Mode::Root => "as root",
        Mode::User => "as an ordinary user",
    };
    let lacking = |need: Need| {
        report
            .checks
            .iter()
            .filter(|check| check.needed == need && check.status != Status::Ok)
            .count()
    };
    match report.verdict {
        Verdict::Ready => style.paint(
            "32",
            &format!("ready: sandboxes run {who} with all features\n"),
        ),
        Verdict::Limited => style.paint(
            "33",
            &format!(
                "limited: sandboxes run {who}; {} recommended feature(s) missing or partial\n",
                lacking(Need::Recommended) + lacking(Need::Required)
            ),
        ),
        Verdict::NotReady => style.paint(
            "31;1",
            &format!(
                "not ready: {} required feature(s) missing {who}\n",
                lacking(Need::Required)
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Report {
        let good = Check::ok("short", Need::Required)
            .purpose("gives a")
            .detail("seen");
        let bad = Check::ok("a-longer-name", Need::Recommended).purpose("gives b");
        Report::of(Mode::Root, vec![good, bad.missing("not seen", "sudo do")])
    }

    #[test]
    fn plain_text_is_aligned_and_has_the_fix() {
        assert_eq!(
            render(&sample(), Style::Plain),
            "ok       short          gives a\n\
             \x20                       seen\n\
             missing  a-longer-name  gives b\n\
             \x20                       not seen\n\
             \x20                       fix: sudo do\n\
             \n\
             limited: sandboxes run as root; 1 recommended feature(s) missing or partial\n"
        );
    }

    #[test]
    fn same_fix_is_written_once() {
        let one = Check::ok("one", Need::Optional)
            .purpose("a")
            .missing("", "sudo do");
        let two = Check::ok("two", Need::Optional)
            .purpose("b")
            .missing("", "sudo do");
        let text = render(&Report::of(Mode::User, vec![one, two]), Style::Plain);
        assert_eq!(text.matches("sudo do").count(), 1);
        assert!(text.contains("fix: same as for one"), "{text}");
    }

    #[test]
    fn colour_only_adds_escapes() {
        let coloured = render(&sample(), Style::Colour);
        let mut stripped = String::new();
        let mut rest = coloured.as_str();
        while let Some((before, after)) = rest.split_once("\x1b[") {
            stripped.push_str(before);
            rest = after.split_once('m').unwrap().1;
        }
        stripped.push_str(rest);
        assert_eq!(stripped, render(&sample(), Style::Plain));
        assert_ne!(coloured, stripped);
    }

    #[test]
    fn file_gets_no_colour() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(Style::for_output(&file), Style::Plain);
    }
}
