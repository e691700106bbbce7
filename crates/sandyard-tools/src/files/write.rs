//! `Write` and `write_file`: writing whole files.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use super::blocking::blocking;
use super::change::{self, lock_changes, write_atomically};
use super::diff::diff;
use crate::reply::{Answer, Problem, Reply};
use crate::tool::{Effect, Tool, tool};
use crate::tool_state::ToolState;

#[derive(Deserialize, JsonSchema)]
struct WriteArguments {
    /// Path of the file, absolute or relative to the workspace. Missing folders are created.
    file_path: String,
    /// The complete content.
    content: String,
}

#[derive(Deserialize, JsonSchema)]
struct ShortArguments {
    /// Path of the file, absolute or relative to the workspace. Missing folders are created.
    #[serde(alias = "file_path")]
    path: String,
    /// The complete content.
    content: String,
}

/// `Write`.
pub(super) fn write_tool() -> Tool {
    tool::<WriteArguments, _, _>(
        "Write",
        "Write a file",
        Effect::Changes,
        "Write a complete file: create it or replace its content. Returns the diff. Use Edit to change a part of a file.",
        |tool_state, arguments, _call| async move {
            write(&tool_state, arguments.file_path, arguments.content).await
        },
    )
}

/// `write_file`.
pub(super) fn short_tool() -> Tool {
    tool::<ShortArguments, _, _>(
        "write_file",
        "Write a file",
        Effect::Changes,
        "Write a complete file: create it or replace its content. The same as Write.",
        |tool_state, arguments, _call| async move {
            write(&tool_state, arguments.path, arguments.content).await
        },
    )
}

async fn write(tool_state: &ToolState, path: String, content: String) -> Answer {
    let workspace = tool_state.workspace.clone();
    let done = blocking(move || {
        let path = workspace.resolve_file(&path)?;
        let _lock = lock_changes()?;
        let before = before(&path);
        write_atomically(&path, &content)?;
        Ok(summary(&workspace.display(&path), before, &content))
    });
    done.await.map(Reply::text)
}

/// The previous content.
enum Before {
    Missing,
    Text(String),
    /// Not text, so it cannot be compared.
    Other,
}

fn before(path: &Path) -> Before {
    match change::read(path) {
        Ok(None) => Before::Missing,
        Ok(Some(text)) => Before::Text(text),
        Err(Problem { .. }) => Before::Other,
    }
}

fn summary(name: &str, before: Before, content: &str) -> String {
    let (lines, bytes) = (content.lines().count(), content.len());
    match before {
        Before::Missing => format!("created {name}: {lines} lines, {bytes} bytes"),
        Before::Other => format!("replaced {name}: {lines} lines, {bytes} bytes"),
        Before::Text(text) => diff(name, &text, content),
    }
}
