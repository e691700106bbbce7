//! Looking for files and in files.
//!
//! | module | holds |
//! |---|---|
//! | `walk`, `ignored` | all files below a folder, as ripgrep sees them; what rules leave out |
//! | `grep` | `Grep`: lines that match a regular expression |
//! | `glob` | `Glob`: names that match a pattern |
//! | `tree`, `parse`, `languages` | `ASTGrep`: code that matches code |
//! | `list` | `LS`: what is in a folder |

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

/// What is said at the end of a text, for those who only see the rest of the answer.
fn note(words: &str) -> Option<String> {
    Some(words.trim().to_owned()).filter(|note| !note.is_empty())
}

/// A text of one line, cut at so many characters, with nothing in it that would look like another line.
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
        line.push_str(" [cut]");
    }
    line
}
