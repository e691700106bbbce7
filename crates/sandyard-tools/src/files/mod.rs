//! Reading and changing files.
//!
//! | module | holds |
//! |---|---|
//! | `open`, `kind`, `lines`, `pdf` | reading parts of files of any kind |
//! | `read`, `render` | `Read` and `read_file` |
//! | `change`, `diff`, `text` | writing whole files, and diffs |
//! | `write`, `edit`, `patch`, `editor`, `undo` | the tools that change files |
//! | `blocking` | work on other threads |

pub(crate) mod blocking;
pub(crate) mod change;
mod diff;
mod edit;
mod editor;
pub(crate) mod kind;
mod lines;
pub(crate) mod open;
mod patch;
mod pdf;
mod read;
mod render;
mod text;
mod undo;
mod write;

#[cfg(test)]
pub(crate) mod test_env;
#[cfg(test)]
mod tests;

pub(crate) use change::write_atomically;
pub(crate) use diff::diff;
pub(crate) use edit::replace;
pub(crate) use patch::{apply_patch_below, summary as patch_summary};
pub(crate) use undo::Undo;

use crate::tool::Tool;

/// The tools.
pub(crate) fn tools() -> Vec<Tool> {
    vec![
        read::read_tool(),
        write::write_tool(),
        edit::edit_tool(),
        patch::patch_tool(),
        editor::editor_tool(),
        read::short_tool(),
        write::short_tool(),
    ]
}
