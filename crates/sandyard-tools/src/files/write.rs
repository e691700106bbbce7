//! `Write` and `write_file`: writing whole files.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use super::change::{self, lock_changes, write_atomically};
use super::diff::diff;
use crate::reply::{Answer, Problem, Reply};
use crate::tool::{Effect, Tool, workspace_tool};
use crate::workspace::Workspace;

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
    workspace_tool("Write", Effect::Changes, write)
        .title("Write a file")
        .description("Write a complete file: create it or replace its content. Returns the diff. Use Edit to change a part of a file.")
}

/// `write_file`.
pub(super) fn short_tool() -> Tool {
    workspace_tool("write_file", Effect::Changes, write_short)
        .title("Write a file")
        .description("Write a complete file: create it or replace its content. The same as Write.")
}

fn write(workspace: &Workspace, arguments: WriteArguments) -> Answer {
    let path = workspace.resolve_file(&arguments.file_path)?;
    let content = &arguments.content;
    let _lock = lock_changes()?;
    let before = before(&path);
    write_atomically(&path, content)?;
    let text = summary(&workspace.display(&path), before, content);
    Ok(Reply::text(text))
}

fn write_short(workspace: &Workspace, arguments: ShortArguments) -> Answer {
    let arguments = WriteArguments {
        file_path: arguments.path,
        content: arguments.content,
    };
    write(workspace, arguments)
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
