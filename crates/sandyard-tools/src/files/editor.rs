//! `str_replace_based_edit_tool`: an editor with five commands that some models are trained on.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::blocking::blocking;
use super::change::{self, lock_changes, write_atomically};
use super::diff::diff;
use super::edit::replace;
use super::open::failed;
use super::read::{self, Part};
use super::text::{BYTE_ORDER_MARK, Ending, with_crlf};
use crate::call::Call;
use crate::reply::{Answer, Problem, Reply, Result};
use crate::search;
use crate::tool::{Effect, Tool, tool};
use crate::tool_state::ToolState;

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Command {
    View,
    Create,
    StrReplace,
    Insert,
    UndoEdit,
}

#[derive(Deserialize, JsonSchema)]
struct EditorArguments {
    /// The command.
    command: Command,
    /// Path of the file, or folder for view; absolute or relative to the workspace.
    path: String,
    /// For create: the complete content.
    file_text: Option<String>,
    /// For str_replace: the text to replace, which must occur exactly once in the file.
    old_str: Option<String>,
    /// For str_replace: the replacement (default: empty). For insert: the lines to insert.
    #[serde(alias = "insert_text")]
    new_str: Option<String>,
    /// For insert: the number of the line to insert after; 0 for the start of the file.
    insert_line: Option<usize>,
    /// For view of a file: the first and the last line number; -1 means the end of the file.
    view_range: Option<Vec<i64>>,
}

/// The tool.
pub(super) fn editor_tool() -> Tool {
    tool("str_replace_based_edit_tool", Effect::Changes, run_command)
        .title("Editor")
        .description("View and edit files. view shows a file with line numbers, or lists a folder; create writes a complete file; str_replace replaces \
         text that occurs exactly once; insert adds lines after a line; undo_edit reverts the last change that this tool made to a \
         file.")
}

async fn run_command(tool_state: Arc<ToolState>, arguments: EditorArguments, call: Call) -> Answer {
    match arguments.command {
        Command::View => view(&tool_state, &arguments, &call).await,
        _ => blocking(move || change(&tool_state, &arguments)).await,
    }
}

async fn view(tool_state: &ToolState, arguments: &EditorArguments, call: &Call) -> Answer {
    let path = tool_state.workspace.resolve(&arguments.path)?;
    if path.is_dir() {
        if arguments.view_range.is_some() {
            return Err(Problem::new(
                "view_range does not apply to a folder: leave it out",
            ));
        }
        return search::two_levels(tool_state, path, call).await;
    }
    let part = match arguments.view_range.as_deref() {
        None => Part {
            first: 1,
            limit: u64::MAX,
        },
        Some([first, last]) if *first >= 1 && (*last == -1 || last >= first) => Part {
            first: first.unsigned_abs(),
            limit: if *last == -1 {
                u64::MAX
            } else {
                last.abs_diff(*first) + 1
            },
        },
        Some(_) => {
            return Err(Problem::new(
                "view_range must be two numbers, the first line (from 1) and the last one (or -1 for the end)",
            ));
        }
    };
    read::read(tool_state, &arguments.path, part, call).await
}

fn change(tool_state: &ToolState, arguments: &EditorArguments) -> Answer {
    let path = tool_state.workspace.resolve_file(&arguments.path)?;
    let name = tool_state.workspace.display(&path);
    let _lock = lock_changes()?;
    if matches!(arguments.command, Command::UndoEdit) {
        return undo(tool_state, &path, &name);
    }
    let before = change::read(&path)?;
    let after = match arguments.command {
        Command::Create => {
            let text = arguments.file_text.clone();
            text.ok_or_else(|| Problem::new("create needs file_text, the complete content"))?
        }
        Command::StrReplace => {
            let before = before.as_deref().ok_or_else(|| missing(&name))?;
            let old = arguments.old_str.as_deref().filter(|old| !old.is_empty());
            let old =
                old.ok_or_else(|| Problem::new("str_replace needs old_str, the text to replace"))?;
            let new = arguments.new_str.as_deref().unwrap_or_default();
            replace(&name, before, old, new, false)?
        }
        _ => insert(arguments, &name, before.as_deref())?,
    };
    write_atomically(&path, &after)?;
    let summary = match &before {
        None => format!("created {name}: {} lines", after.lines().count()),
        Some(before) => diff(&name, before, &after),
    };
    tool_state.undo.push(&path, before, &after);
    Ok(Reply::text(summary))
}

fn insert(arguments: &EditorArguments, name: &str, before: Option<&str>) -> Result<String> {
    let before = before.ok_or_else(|| missing(name))?;
    let (Some(line), Some(new)) = (arguments.insert_line, arguments.new_str.as_deref()) else {
        return Err(Problem::new(
            "insert needs insert_line (0 for the start) and new_str, the lines to insert",
        ));
    };
    // The byte order mark stays at the start.
    let (mark, before) = match before.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => (&before[..BYTE_ORDER_MARK.len_utf8()], rest),
        None => ("", before),
    };
    let lines = before.split_inclusive('\n').count();
    if line > lines {
        return Err(Problem::new(format!(
            "{name} has {lines} lines: insert_line must be from 0 to {lines}"
        )));
    }
    let at: usize = before.split_inclusive('\n').take(line).map(str::len).sum();
    let (above, below) = before.split_at(at);
    let is_crlf = Ending::of(before) == Ending::CrLf;
    let end = if is_crlf { "\r\n" } else { "\n" };
    let mut new = if is_crlf {
        with_crlf(new)
    } else {
        new.to_owned()
    };
    if !new.ends_with('\n') && !below.is_empty() {
        new.push_str(end);
    }
    let gap = if above.is_empty() || above.ends_with('\n') {
        ""
    } else {
        end
    };
    Ok(format!("{mark}{above}{gap}{new}{below}"))
}

fn undo(tool_state: &ToolState, path: &Path, name: &str) -> Answer {
    let done = tool_state.undo.revert(path, |step| {
        let now = change::read(path)?;
        if !now.as_deref().is_some_and(|text| step.matches_after(text)) {
            return Err(Problem::new(format!(
                "{name} was changed by another program since: read it, and revert it with str_replace"
            )));
        }
        let now = now.unwrap_or_default();
        match &step.before {
            Some(before) => {
                write_atomically(path, before)?;
                Ok(diff(name, &now, before))
            }
            None => {
                fs::remove_file(path).map_err(|error| failed(path, "removed", &error))?;
                Ok(format!("{name} was removed: it did not exist before"))
            }
        }
    });
    match done {
        Some(done) => done.map(Reply::text),
        None => Err(Problem::new(format!(
            "no change of {name} to undo: only changes by this tool can be undone, and old ones are forgotten"
        ))),
    }
}

fn missing(name: &str) -> Problem {
    Problem::new(format!(
        "{name} does not exist: find files with LS or Glob, or create it with create"
    ))
}
