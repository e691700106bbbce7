//! Reading a patch.

use crate::reply::{Problem, Result};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";
const END_OF_FILE: &str = "*** End of File";

/// What is to be done to one file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Section {
    /// A new one with this text.
    Add { path: String, text: String },
    /// It goes.
    Delete { path: String },
    /// Changes in it.
    Update {
        path: String,
        move_to: Option<String>,
        hunks: Vec<Hunk>,
    },
}

/// One change in a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hunk {
    /// Lines above it, one after the other, that say where it is.
    pub(super) headers: Vec<String>,
    /// What is there and what is to be.
    pub(super) lines: Vec<Line>,
    /// It is at the end of the file.
    pub(super) is_at_end: bool,
}

/// A line of a change.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Stays.
    Same(String),
    /// Goes.
    Old(String),
    /// Comes.
    New(String),
}

/// Takes a patch apart.
pub(super) fn parse(input: &str) -> Result<Vec<Section>> {
    let mut lines: Vec<&str> = input
        .trim()
        .split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .collect();
    if lines.first().map(|line| line.trim_end()) != Some(BEGIN) {
        return Err(Problem::new(format!(
            "the first line of the patch must be \"{BEGIN}\""
        )));
    }
    if lines.len() < 2 || lines.pop().map(str::trim_end) != Some(END) {
        return Err(Problem::new(format!(
            "the last line of the patch must be \"{END}\""
        )));
    }
    let mut reader = Reader { lines, at: 1 };
    let mut sections = Vec::new();
    while let Some(line) = reader.next() {
        if line.is_empty() {
            continue;
        }
        sections.push(reader.section(line)?);
    }
    if sections.is_empty() {
        return Err(Problem::new(
            "the patch is empty: it needs at least one \"*** Add File:\", \"*** Delete File:\" or \"*** Update File:\"",
        ));
    }
    Ok(sections)
}

struct Reader<'a> {
    lines: Vec<&'a str>,
    at: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let line = self.lines.get(self.at).copied();
        self.at += 1;
        line
    }

    /// The next line if it belongs to the section that has begun. Empty lines before another one belong to none.
    fn next_inside(&mut self) -> Option<&'a str> {
        let rest = self.lines.get(self.at..)?;
        let empty = rest.iter().take_while(|line| line.is_empty()).count();
        let begins_another = |line: &&str| {
            [ADD, DELETE, UPDATE]
                .iter()
                .any(|start| line.starts_with(start))
        };
        if rest.get(empty).is_none_or(begins_another) {
            self.at += empty;
            return None;
        }
        self.at += 1;
        rest.first().copied()
    }

    fn section(&mut self, line: &str) -> Result<Section> {
        if let Some(path) = line.strip_prefix(ADD) {
            self.add(parse_path(path, self.at)?)
        } else if let Some(path) = line.strip_prefix(DELETE) {
            let path = parse_path(path, self.at)?;
            match self.next_inside() {
                None => Ok(Section::Delete { path }),
                Some(line) => Err(self.wrong(&path, line, "nothing may follow a deletion")),
            }
        } else if let Some(path) = line.strip_prefix(UPDATE) {
            self.update(parse_path(path, self.at)?)
        } else {
            Err(Problem::new(format!(
                "line {} of the patch must begin a file (\"*** Add File: PATH\", \"*** Delete File: PATH\" or \
                 \"*** Update File: PATH\"), but is {line:?}",
                self.at
            )))
        }
    }

    fn add(&mut self, path: String) -> Result<Section> {
        let mut text = String::new();
        while let Some(line) = self.next_inside() {
            let Some(line) = line.strip_prefix('+') else {
                return Err(self.wrong(&path, line, "every line of a new file starts with +"));
            };
            text.push_str(line);
            text.push('\n');
        }
        Ok(Section::Add { path, text })
    }

    fn update(&mut self, path: String) -> Result<Section> {
        let mut move_to = None;
        let mut hunks: Vec<Hunk> = Vec::new();
        let mut hunk = Hunk::default();
        let mut is_first = true;
        while let Some(line) = self.next_inside() {
            if let Some(target) = line.strip_prefix(MOVE).filter(|_| is_first) {
                move_to = Some(parse_path(target, self.at)?);
            } else if line == "@@" || line.starts_with("@@ ") {
                if !hunk.lines.is_empty() {
                    hunks.push(std::mem::take(&mut hunk));
                }
                let header = line.trim_start_matches('@').trim_start();
                if !header.is_empty() {
                    hunk.headers.push(header.to_owned());
                }
            } else if line.trim_end() == END_OF_FILE {
                if hunk.lines.is_empty() {
                    return Err(self.wrong(&path, line, "it must follow a change"));
                }
                hunk.is_at_end = true;
                hunks.push(std::mem::take(&mut hunk));
            } else {
                hunk.lines.push(self.line(&path, line)?);
            }
            is_first = false;
        }
        if !hunk.lines.is_empty() {
            hunks.push(hunk);
        } else if !hunk.headers.is_empty() {
            return Err(Problem::new(format!(
                "the last @@ of {path} has no change after it"
            )));
        }
        if hunks.is_empty() && move_to.is_none() {
            return Err(Problem::new(format!(
                "the update of {path} changes nothing"
            )));
        }
        Ok(Section::Update {
            path,
            move_to,
            hunks,
        })
    }

    fn line(&self, path: &str, line: &str) -> Result<Line> {
        let mut characters = line.chars();
        let first = characters.next();
        let rest = characters.as_str().to_owned();
        match first {
            // An editor may have taken the one space of an empty line away.
            None => Ok(Line::Same(String::new())),
            Some(' ') => Ok(Line::Same(rest)),
            Some('-') => Ok(Line::Old(rest)),
            Some('+') => Ok(Line::New(rest)),
            Some(_) => Err(self.wrong(path, line, "lines of a change start with a space, - or +")),
        }
    }

    fn wrong(&self, path: &str, line: &str, reason: &str) -> Problem {
        let shown: String = line.chars().take(200).collect();
        Problem::new(format!(
            "line {} of the patch ({path}) is wrong, {reason}: {shown:?}",
            self.at
        ))
    }
}

fn parse_path(path: &str, line: usize) -> Result<String> {
    let path = path.trim();
    if path.is_empty() {
        return Err(Problem::new(format!(
            "line {line} of the patch names no file"
        )));
    }
    Ok(path.to_owned())
}
