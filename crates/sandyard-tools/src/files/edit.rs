//! Changing a part of a file: `Edit`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::blocking::blocking;
use super::change::{self, turn, write_atomically};
use super::diff::diff;
use super::text::{BYTE_ORDER_MARK, Ending, with_crlf};
use crate::reply::{Answer, Problem, Reply};
use crate::tool::{Effect, Tool, tool};
use crate::workspace::Workspace;

/// So many of the places are told when there are too many.
const PLACES: usize = 5;

#[derive(Deserialize, JsonSchema)]
struct EditArguments {
    /// The file: an absolute path, or one relative to the workspace.
    file_path: String,
    /// The text to be replaced, exactly as it is in the file (without line numbers). Empty: a new file is made.
    old_string: String,
    /// What comes in its place.
    new_string: String,
    /// Replace every place, not just one.
    #[serde(default)]
    replace_all: bool,
}

/// `Edit`.
pub(super) fn edit_tool() -> Tool {
    tool::<EditArguments, _, _>(
        "Edit",
        "Change a part of a file",
        Effect::Changes,
        "Replaces a text in a file by another. The old text must be in the file exactly once, with all its spaces; give \
         some lines around it, or replace_all. Answers with the difference.",
        |workshop, arguments, _call| async move {
            let workspace = workshop.workspace.clone();
            blocking(move || edit(&workspace, &arguments)).await
        },
    )
}

fn edit(workspace: &Workspace, arguments: &EditArguments) -> Answer {
    let path = workspace.resolve_file(&arguments.file_path)?;
    let name = workspace.shown(&path);
    let _turn = turn()?;
    let before = change::read(&path)?;
    if arguments.old_string.is_empty() {
        if before.is_some_and(|text| !text.is_empty()) {
            return Err(Problem::new(format!(
                "{name} is there already, and an empty old_string only makes new files: give the text to be replaced, \
                 or use Write"
            )));
        }
        write_atomically(&path, &arguments.new_string)?;
        return Ok(Reply::text(format!(
            "created {name}: {} bytes",
            arguments.new_string.len()
        )));
    }
    let before = before.ok_or_else(|| {
        Problem::new(format!(
            "there is no {name}: look with LS or Glob, or make it with Write"
        ))
    })?;
    let after = replace(
        &name,
        &before,
        &arguments.old_string,
        &arguments.new_string,
        arguments.replace_all,
    )?;
    write_atomically(&path, &after)?;
    Ok(Reply::text(diff(&name, &before, &after)))
}

/// The text with a part replaced that must be there, and only once unless all are meant.
///
/// Lines may end otherwise in the text than in what is looked for; they stay as they are in the text.
pub(crate) fn replace(
    name: &str,
    text: &str,
    old: &str,
    new: &str,
    all: bool,
) -> Result<String, Problem> {
    if old == new {
        return Err(Problem::new(
            "the old text and the new one are the same: there is nothing to change",
        ));
    }
    let (mark, body) = match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(body) => (&text[..BYTE_ORDER_MARK.len_utf8()], body),
        None => ("", text),
    };
    let old = old.strip_prefix(BYTE_ORDER_MARK).unwrap_or(old);
    let new = new.strip_prefix(BYTE_ORDER_MARK).unwrap_or(new);
    let has_crlf = body.contains("\r\n");
    let (old, new) = if Ending::of(body) == Ending::CrLf || (has_crlf && !body.contains(old)) {
        (with_crlf(old), with_crlf(new))
    } else {
        (old.to_owned(), new.to_owned())
    };
    let places = if old.is_empty() {
        0
    } else {
        body.matches(&old).count()
    };
    match places {
        0 => Err(not_found(name, body, &old)),
        1 => Ok(format!("{mark}{}", body.replacen(&old, &new, 1))),
        _ if all => {
            check_size(body, &old, &new, places)?;
            Ok(format!("{mark}{}", body.replace(&old, &new)))
        }
        _ => Err(too_many(name, body, &old, places)),
    }
}

/// A short text replaced by a long one in many places is more than anybody wants.
fn check_size(text: &str, old: &str, new: &str, places: usize) -> Result<(), Problem> {
    let grown = new.len().saturating_sub(old.len()).saturating_mul(places);
    if (text.len().saturating_add(grown)) as u64 > change::MAX_CHANGED {
        return Err(Problem::new(format!(
            "with all {places} places replaced the file would have more than {} bytes",
            change::MAX_CHANGED
        )));
    }
    Ok(())
}

fn too_many(name: &str, text: &str, old: &str, places: usize) -> Problem {
    let lines: Vec<_> = text
        .match_indices(old)
        .take(PLACES)
        .map(|(at, _)| line_at(text, at).to_string())
        .collect();
    let more = if places > PLACES { ", …" } else { "" };
    Problem::new(format!(
        "the old text is in {name} {places} times (lines {}{more}): give more of the lines around the place that is meant, \
         or set replace_all to replace all of them",
        lines.join(", ")
    ))
}

fn not_found(name: &str, text: &str, old: &str) -> Problem {
    let mut words =
        format!("the old text is not in {name}: read the file again and copy the text exactly");
    let first = old
        .lines()
        .find(|line| !line.trim().is_empty())
        .map(str::trim);
    if let Some((number, _)) = first.and_then(|first| first.split_once('\t'))
        && number.parse::<u64>().is_ok()
    {
        words.push_str("; leave the line numbers out");
    } else if let Some(first) = first {
        let near = text
            .lines()
            .enumerate()
            .find(|(_, line)| line.trim() == first)
            .or_else(|| {
                text.lines()
                    .enumerate()
                    .find(|(_, line)| line.contains(first))
            });
        if let Some((number, line)) = near {
            let line: String = line.chars().take(200).collect();
            words.push_str(&format!(
                "; its first line is nearest to line {}: {line:?}",
                number + 1
            ));
        }
    }
    Problem::new(words)
}

/// The number of the line a place is in.
fn line_at(text: &str, at: usize) -> usize {
    text.as_bytes()[..at]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1
}
