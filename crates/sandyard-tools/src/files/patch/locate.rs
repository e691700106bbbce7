//! Finding where a change belongs, and making it.

use super::parse::{Hunk, Line};
use crate::files::text::Ending;
use crate::reply::{Problem, Result};

/// The text with all changes made.
pub(super) fn change(path: &str, text: &str, hunks: &[Hunk]) -> Result<String> {
    let ending = Ending::of(text);
    let mut lines: Vec<&str> = text.split('\n').collect();
    // What comes after the last line's end is no line.
    let ends_with_newline = lines.last() == Some(&"");
    if ends_with_newline {
        lines.pop();
    }
    let mut changed: Vec<String> = Vec::new();
    let mut at = 0;
    for (number, hunk) in hunks.iter().enumerate() {
        let place = locate(&lines, at, hunk)
            .map_err(|why| Problem::new(format!("change {} of {path}: {why}", number + 1)))?;
        changed.extend(lines[at..place.start].iter().map(|line| (*line).to_owned()));
        at = place.start;
        for line in &hunk.lines {
            match line {
                Line::Same(_) if at < place.end => {
                    // As the file has it: it may differ in spaces at its end.
                    changed.push(lines[at].to_owned());
                    at += 1;
                }
                Line::Same(_) => {}
                Line::Old(_) => at = (at + 1).min(place.end),
                Line::New(new) => changed.push(match ending {
                    Ending::CrLf => format!("{new}\r"),
                    Ending::Lf => new.clone(),
                }),
            }
        }
        at = place.end;
    }
    changed.extend(lines[at..].iter().map(|line| (*line).to_owned()));
    let mut text = changed.join("\n");
    if !text.is_empty() && (ends_with_newline || lines.is_empty()) {
        text.push('\n');
    }
    Ok(text)
}

struct LineRange {
    start: usize,
    end: usize,
}

fn locate(lines: &[&str], from: usize, hunk: &Hunk) -> Result<LineRange, String> {
    let mut from = from;
    for header in &hunk.headers {
        let found =
            find(lines, &[header], from, false).or_else(|| find_trimmed(lines, header, from));
        from = found
            .ok_or_else(|| format!("there is no line {header:?} after the changes above"))?
            + 1;
    }
    let mut old: Vec<&str> = hunk
        .lines
        .iter()
        .filter_map(|line| match line {
            Line::Same(text) | Line::Old(text) => Some(text.as_str()),
            Line::New(_) => None,
        })
        .collect();
    if old.is_empty() {
        let start = if hunk.headers.is_empty() || hunk.is_at_end {
            lines.len()
        } else {
            from
        };
        return Ok(LineRange { start, end: start });
    }
    let mut found = find(lines, &old, from, hunk.is_at_end);
    if found.is_none()
        && old.last() == Some(&"")
        && matches!(hunk.lines.last(), Some(Line::Same(_)))
    {
        // The end of the last line, taken for a line.
        old.pop();
        found = find(lines, &old, from, hunk.is_at_end);
    }
    let start = found.ok_or_else(|| not_found(lines, &old, from, hunk.is_at_end))?;
    let end = start + old.len();
    Ok(LineRange { start, end })
}

/// Where these lines are, exactly or but for spaces at their ends.
fn find(lines: &[&str], expected: &[&str], from: usize, is_at_end: bool) -> Option<usize> {
    let last = lines.len().checked_sub(expected.len())?;
    let first = if is_at_end { last.max(from) } else { from };
    let exactly = |a: &str, b: &str| a == b;
    let nearly = |a: &str, b: &str| a.trim_end() == b.trim_end();
    let fits = |at: usize, same: &dyn Fn(&str, &str) -> bool| {
        let there = &lines[at..at + expected.len()];
        there.iter().zip(expected).all(|(a, b)| same(a, b))
    };
    (first..=last)
        .find(|at| fits(*at, &exactly))
        .or_else(|| (first..=last).find(|at| fits(*at, &nearly)))
}

/// Headers are often written without the space before them.
fn find_trimmed(lines: &[&str], header: &str, from: usize) -> Option<usize> {
    let found = lines
        .get(from..)?
        .iter()
        .position(|line| line.trim() == header.trim());
    found.map(|at| from + at)
}

fn not_found(lines: &[&str], old: &[&str], from: usize, is_at_end: bool) -> String {
    if is_at_end && find(lines, old, from, false).is_some() {
        return "its lines are in the file, but not at its end: leave \"*** End of File\" out"
            .to_owned();
    }
    if find(lines, old, 0, false).is_some() {
        return "its lines are above an earlier change or its @@ line: put the changes in the file's order".to_owned();
    }
    let first_missing = old
        .iter()
        .find(|line| find(lines, &[line], from, false).is_none());
    match first_missing {
        Some(line) => format!(
            "the file has no line {line:?}: read the file again and use its lines as they are"
        ),
        None => {
            "its lines are in the file, but not one after the other: read the file again".to_owned()
        }
    }
}
