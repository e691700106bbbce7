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

use crate::tool::Tool;

/// The tools.
pub(crate) fn tools() -> Vec<Tool> {
    vec![
        grep::grep_tool(),
        glob::glob_tool(),
        tree::tree_tool(),
        list::list_tool(),
    ]
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
