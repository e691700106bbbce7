//! Searching for files and in files.
//!
//! | module | holds |
//! |---|---|
//! | `walk`, `ignored` | all files below a folder, like ripgrep; ignore rules |
//! | `grep` | `Grep`: lines that match a regular expression |
//! | `glob` | `Glob`: paths that match a pattern |
//! | `tree`, `parse`, `languages` | `ASTGrep`: code that matches a code pattern |
//! | `list` | `LS`: the content of a folder |

mod glob;
mod grep;
mod ignored;
mod languages;
mod list;
mod parse;
#[cfg(test)]
mod tests;
mod tree;
pub(crate) mod walk;

pub(crate) use list::two_levels;

use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::call::Call;
use crate::files::blocking::{Bounds, blocking};
use crate::reply::Answer;
use crate::tool::{Effect, Tool, tool};
use crate::workspace::Workspace;

/// The tools.
pub(crate) fn tools() -> Vec<Tool> {
    vec![
        grep::grep_tool(),
        glob::glob_tool(),
        tree::tree_tool(),
        list::list_tool(),
    ]
}

/// Creates a tool that searches the workspace until the call is cancelled or the time limit is reached.
fn search_tool<A, W>(name: &'static str, limit: Duration, work: W) -> Tool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    W: Fn(&Workspace, A, &Bounds) -> Answer + Copy + Send + Sync + 'static,
{
    tool(
        name,
        Effect::Reads,
        move |tool_state, arguments, call: Call| {
            let bounds = Bounds::new(&call.cancelled, limit);
            blocking(move || work(&tool_state.workspace, arguments, &bounds))
        },
    )
}

/// A note of the text for the structured result; none if it is empty.
fn note(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|note| !note.is_empty())
}

/// The first line of a text, truncated, without control characters that would look like another line.
fn one_line(text: &str, limit: usize) -> String {
    let text = text.trim_end_matches(['\n', '\r']);
    let mut line: String = text
        .chars()
        .take(limit)
        .map(|character| {
            if character.is_control() && character != '\t' {
                '\u{fffd}'
            } else {
                character
            }
        })
        .collect();
    if text.chars().nth(limit).is_some() {
        line.push_str(" [truncated]");
    }
    line
}
