//! `Edit`: changing a part of a file.

use schemars::JsonSchema;
use serde::Deserialize;

use super::change::{self, lock_changes, write_atomically};
use super::diff::diff;
use super::text::{BYTE_ORDER_MARK, Ending, with_crlf};
use crate::reply::{Answer, Problem, Reply, Result};
use crate::tool::{Effect, Tool, workspace_tool};
use crate::workspace::Workspace;

/// Number of matches to list when there are too many.
const MAX_LISTED: usize = 5;

#[derive(Deserialize, JsonSchema)]
struct EditArguments {
    /// Path of the file, absolute or relative to the workspace.
    file_path: String,
    /// Text to replace, exactly as in the file (without line numbers). Empty to create a new file.
    old_string: String,
    /// Replacement text.
    new_string: String,
    /// Replace all occurrences (default false).
    #[serde(default)]
    replace_all: bool,
}

/// `Edit`.
pub(super) fn edit_tool() -> Tool {
    workspace_tool("Edit", Effect::Changes, edit)
        .title("Change a part of a file")
        .description("Replace text in a file. The old text must occur exactly once, including whitespace: include surrounding lines to make it \
         unique, or set replace_all. Returns the diff.")
}

fn edit(workspace: &Workspace, arguments: EditArguments) -> Answer {
    let path = workspace.resolve_file(&arguments.file_path)?;
    let name = workspace.display(&path);
    let _lock = lock_changes()?;
    let before = change::read(&path)?;
    if arguments.old_string.is_empty() {
        if before.is_some_and(|text| !text.is_empty()) {
            return Err(Problem::new(format!(
                "{name} exists already, and an empty old_string only creates new files: give the text to replace, or use Write"
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
            "{name} does not exist: find files with LS or Glob, or create it with Write"
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

/// Replaces a part of a text, which must occur exactly once unless `all` is set.
///
/// The line endings of `old` may differ from those of the text, which keeps its own.
pub(crate) fn replace(name: &str, text: &str, old: &str, new: &str, all: bool) -> Result<String> {
    if old == new {
        return Err(Problem::new("the old text and the new text are the same"));
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
    let matches = if old.is_empty() {
        0
    } else {
        body.matches(&old).count()
    };
    match matches {
        0 => Err(not_found(name, body, &old)),
        1 => Ok(format!("{mark}{}", body.replacen(&old, &new, 1))),
        _ if all => {
            check_size(body, &old, &new, matches)?;
            Ok(format!("{mark}{}", body.replace(&old, &new)))
        }
        _ => Err(too_many(name, body, &old, matches)),
    }
}

/// Checks the size after replacing a short text by a long one many times.
fn check_size(text: &str, old: &str, new: &str, matches: usize) -> Result<()> {
    let grown = new.len().saturating_sub(old.len()).saturating_mul(matches);
    if (text.len().saturating_add(grown)) as u64 > change::MAX_CHANGED {
        return Err(Problem::new(format!(
            "after replacing all {matches} occurrences the file would be larger than {} bytes",
            change::MAX_CHANGED
        )));
    }
    Ok(())
}

fn too_many(name: &str, text: &str, old: &str, matches: usize) -> Problem {
    let lines: Vec<_> = text
        .match_indices(old)
        .take(MAX_LISTED)
        .map(|(at, _)| line_at(text, at).to_string())
        .collect();
    let more = if matches > MAX_LISTED { ", …" } else { "" };
    Problem::new(format!(
        "the old text occurs {matches} times in {name} (lines {}{more}): include more surrounding lines, or set replace_all to replace \
         all of them",
        lines.join(", ")
    ))
}

fn not_found(name: &str, text: &str, old: &str) -> Problem {
    let mut message =
        format!("the old text is not in {name}: read the file again and copy the text exactly");
    let first = old
        .lines()
        .find(|line| !line.trim().is_empty())
        .map(str::trim);
    if let Some((number, _)) = first.and_then(|first| first.split_once('\t'))
        && number.parse::<u64>().is_ok()
    {
        message.push_str("; leave out the line numbers");
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
            message.push_str(&format!(
                "; its first line is most similar to line {}: {line:?}",
                number + 1
            ));
        }
    }
    Problem::new(message)
}

/// The number of the line at an offset.
fn line_at(text: &str, at: usize) -> usize {
    text.as_bytes()[..at]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1
}
